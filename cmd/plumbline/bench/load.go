package bench

import (
	"bytes"
	"fmt"
	"iter"
	"time"

	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// load is what a scenario publishes: distinct, valid traces of the simulated fleet, in its order. The last trace of
// each session ends it.
type load struct {
	cards   []fleet.Card
	copies  int // as many cards are registered in addition: copies of cards for agents that publish nothing
	records []stream.Record
	due     []time.Duration // of each record, after begins: when its agent publishes it
	begins  time.Time
	lasts   time.Duration // from begins to the last date
	bytes   int64
}

// newLoad returns traces of a fleet that were dated in the hour before now.
func newLoad(cfg fleet.Config, now time.Time) *load {
	return newLoadFrom(cfg, now.Add(-fleet.DefaultWindow), fleet.DefaultWindow-fleet.Margin)
}

// newLoadFrom returns traces of a fleet that are dated within a time that begins at begins.
func newLoadFrom(cfg fleet.Config, begins time.Time, lasts time.Duration) *load {
	cfg.Seed, cfg.Window = 1, lasts+fleet.Margin
	cfg.Start = begins.Add(cfg.Window)
	f := fleet.New(cfg)
	l := &load{cards: f.Cards(), records: make([]stream.Record, 0, cfg.Traces), begins: begins, lasts: lasts}
	seen := make(map[schema.Digest]bool, cfg.Traces)
	for line := range f.Lines() {
		trace, err := schema.Admit(line.Agent, line.Raw)
		if err != nil || seen[trace.Digest] { // planted: refused lines and duplicates
			continue
		}
		seen[trace.Digest] = true
		l.records = append(l.records, stream.Record{Agent: trace.AgentID, Data: trace.Raw, Digest: trace.Digest})
		l.due = append(l.due, line.At.Sub(begins))
		l.bytes += int64(len(trace.Raw))
	}
	return l
}

// registered yields all cards by their key.
func (l *load) registered() iter.Seq[stream.Write] {
	return func(yield func(stream.Write) bool) {
		for i := range len(l.cards) + l.copies {
			card := l.cards[i%len(l.cards)]
			if round := i / len(l.cards); round > 0 {
				suffix := fmt.Sprintf("-%d", round)
				card.Raw = bytes.ReplaceAll(card.Raw, []byte(`"`+card.CardID+`"`), []byte(`"`+card.CardID+suffix+`"`))
				card.Raw = bytes.ReplaceAll(card.Raw, []byte(`"`+card.AgentID+`"`), []byte(`"`+card.AgentID+suffix+`"`))
				card.CardID += suffix
			}
			if !yield(stream.Write{Key: subject.Token(card.CardID), Value: card.Raw}) {
				return
			}
		}
	}
}

// only returns the load without the traces after the first n.
func (l *load) only(n int) *load {
	part := &load{cards: l.cards, records: l.records[:min(n, len(l.records))]}
	for i := range part.records {
		part.bytes += int64(len(part.records[i].Data))
	}
	return part
}

// byAgent divides the load among publishers: it returns the indexes of the traces of each. All traces of an agent
// are with one publisher, in their order.
func (l *load) byAgent(publishers int) [][]int {
	of, next := map[string]int{}, 0
	parts := make([][]int, publishers)
	for i := range l.records {
		agent := l.records[i].Agent
		p, known := of[agent]
		if !known {
			p, next = next%publishers, next+1
			of[agent] = p
		}
		parts[p] = append(parts[p], i)
	}
	return parts
}
