package bench

import (
	"time"

	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// load is what every measurement publishes: distinct, valid traces. The last trace of
// each session ends it.
type load struct {
	cards   [][]byte
	records []stream.Record
	bytes   int64
}

// loadAgents is the number of agents that publish.
const loadAgents = 200

func newLoad(traces int, now time.Time) *load {
	f := fleet.New(fleet.Config{Seed: 1, Agents: loadAgents, Traces: traces, Start: now})
	l := &load{records: make([]stream.Record, 0, traces)}
	for _, card := range f.Cards() {
		l.cards = append(l.cards, card.Raw)
	}
	seen := make(map[schema.Digest]bool, traces)
	for line := range f.Lines() {
		trace, err := schema.Admit(line.Agent, line.Raw)
		if err != nil || seen[trace.Digest] { // planted: refused lines and duplicates
			continue
		}
		seen[trace.Digest] = true
		l.records = append(l.records, stream.Record{Agent: trace.AgentID, Data: trace.Raw, Digest: trace.Digest})
		l.bytes += int64(len(trace.Raw))
	}
	return l
}

// byAgent divides the load among publishers and keeps the order of each agent's traces.
func (l *load) byAgent(publishers int) [][][]byte {
	of, next := map[string]int{}, 0
	parts := make([][][]byte, publishers)
	for i := range l.records {
		r := &l.records[i]
		p, known := of[r.Agent]
		if !known {
			p, next = next%publishers, next+1
			of[r.Agent] = p
		}
		parts[p] = append(parts[p], r.Data)
	}
	return parts
}
