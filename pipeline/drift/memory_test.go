package drift

import (
	"bytes"
	"maps"
	"slices"
	"testing"
	"time"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/schema"
)

// mostResident is the most that a series of an ordinary agent takes in memory while it waits for its next trace.
const mostResident = 4096

// inMemory returns what a series at rest takes in memory, with what Go adds to the sizes of its allocations.
func (c *series) inMemory() int {
	return atRest + cap(bytes.Clone([]byte(c.agent))) + cap(bytes.Clone([]byte(c.card))) + cap(bytes.Clone(c.packed))
}

// lives are the traces of agents from their first on, and what is known about their cards.
type lives struct {
	of    map[string][]*schema.Trace
	facts map[string]aapdrift.CardFacts
}

func (l *lives) trace(agent string, raw []byte) {
	if trace, err := schema.Admit(agent, raw); err == nil { // the fleet has lines that are refused
		l.of[agent] = append(l.of[agent], trace)
	}
}

func (l *lives) card(t testing.TB, raw []byte) {
	card, err := schema.DecodeCard(raw)
	if err != nil {
		t.Fatal(err)
	}
	l.facts[card.CardID] = aapdrift.FactsOf(card)
}

func newLives() *lives { return &lives{map[string][]*schema.Trace{}, map[string]aapdrift.CardFacts{}} }

func fleetLives(t testing.TB) *lives {
	f, l := fleet.New(fleet.Config{Seed: 1, Agents: 20, Traces: 8000, Start: noon}), newLives()
	for _, card := range f.Cards() {
		l.card(t, card.Raw)
	}
	for line := range f.Lines() {
		l.trace(line.Agent, line.Raw)
	}
	return l
}

// recordedLives are those of the recorded agents. No trace says that it is the last one of its session.
func recordedLives(t testing.TB) *lives {
	corpus, l := pipelinetest.ReadCorpus(t), newLives()
	for _, card := range corpus.Cards {
		l.card(t, card)
	}
	for _, r := range corpus.Records {
		l.trace(r.Agent, r.Data)
	}
	return l
}

// endedLives are those of the recorded agents. The last trace of each session says that it is.
func endedLives(t testing.TB) *lives {
	l := recordedLives(t)
	for _, traces := range l.of {
		ended := map[string]bool{}
		for _, trace := range slices.Backward(traces) {
			trace.Context.SessionEnd = !ended[trace.Context.SessionID]
			ended[trace.Context.SessionID] = true
		}
	}
	return l
}

// A series takes at most 4 KiB at every trace of its life: of the recorded agents, whose sessions run side by side,
// whether they say where these end or not, and of the simulated fleet.
func TestSeriesAreSmallInMemory(t *testing.T) {
	for name, lives := range map[string]func(testing.TB) *lives{"recorded": recordedLives, "recorded, with ends": endedLives, "simulated": fleetLives} {
		t.Run(name, func(t *testing.T) {
			l := lives(t)
			for _, agent := range slices.Sorted(maps.Keys(l.of)) {
				l.live(t, agent)
			}
		})
	}
}

// live checks the size of an agent's series after each of its traces.
func (l *lives) live(t *testing.T, agent string) {
	cfg := Default()
	cfg.WaitingTraces = 1
	b := newBench(cfg, noCards{}, nil)
	most, at := 0, 0
	for i, trace := range l.of[agent] {
		e := &entry{message: place{uint64(i + 1), noon.Add(time.Duration(i) * time.Hour)}, order: trace.Timestamp.UnixNano()}
		facts, known := l.facts[trace.CardID]
		if !known {
			facts = aapdrift.CardFacts{CardID: trace.CardID}
		}
		e.sample = aapdrift.SampleOf(trace, facts)
		e.id, e.act = fingerprintOf(e.sample.TraceID), b.reducer.acts.Of(trace)
		b.fold.receive(e)
		b.finish()
		b.take()
		b.fold.stored()
		c := b.fold.series[e.key()]
		if size := c.inMemory(); size > most {
			most, at = size, i+1
		}
	}
	t.Logf("%s takes at most %d bytes, after %d traces", agent, most, at)
	if most > mostResident {
		t.Errorf("%s takes %d bytes after %d traces, want at most %d", agent, most, at, mostResident)
	}
}
