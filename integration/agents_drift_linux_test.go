package integration_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/pipeline/database"
	"github.com/plumbline/plumbline/pipeline/drift"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

var (
	registeredCards = flag.Int("cards", -1, "registered cards of TestDriftOfManyAgents, shared by its agents; negative: each agent has its own")
	memoryOfDrift   = flag.String("memory", "", "GOMEMLIMIT of drift in TestDriftOfManyAgents, such as 3500MiB; empty: none")
	publishedTraces = flag.Int("traced", -1, "traces that TestDriftOfManyAgents publishes, about one for each agent; negative: for all agents")
)

// TestDriftOfManyAgents measures drift where the states of many agents are stored: the time from
// its start to the first trace measured, the resident memory then and after a trace of each agent,
// and the time and CPU for traces of agents whose states are in the database alone, and in memory.
// Half of the states still learn their baselines.
func TestDriftOfManyAgents(t *testing.T) {
	if *manyAgents == 0 {
		t.Skip("a measurement of some minutes: make agents, or -agents N")
	}
	s := newServers(t, place{})
	if err := database.Migrate(t.Context(), s.engine.AdminDSN()); err != nil {
		t.Fatal(err)
	}
	if err := s.client.EnsureTopology(t.Context()); err != nil {
		t.Fatal(err)
	}
	examples := slices.Concat(s.exampleStates(2, 120), s.exampleStates(3, 300))
	names := *manyAgents // agents of the fleet; all others are copies of these under names of their own, with the same cards
	if *registeredCards > 0 {
		names = min(names, *registeredCards)
	}
	f := fleet.New(fleet.Config{Seed: 1, Agents: names, Traces: names, Start: time.Now()})
	registered := f.Cards()
	var cards []fleet.Card
	var records []stream.Record
	for n := range *manyAgents / names {
		copied := ""
		if n > 0 {
			copied = fmt.Sprintf("-%d", n)
		}
		for _, card := range registered {
			card.AgentID += copied
			cards = append(cards, card)
		}
		for line := range f.Lines() {
			if len(records) == *publishedTraces {
				break
			}
			raw := bytes.ReplaceAll(line.Raw, []byte(`"`+line.Agent+`"`), []byte(`"`+line.Agent+copied+`"`))
			records = append(records, pipelinetest.Record(line.Agent+copied, raw))
		}
	}
	s.storeStates(examples, cards)
	const early = 1000 // traces that wait when drift starts, and as many that make them due
	s.publishRecords(records[:early])
	s.settleCards(slices.Values(registered))
	time.Sleep(3 * time.Second) // the traces wait for the lateness, 2 s
	s.publishRecords(records[early : 2*early])

	began := time.Now()
	s.drift = s.service("drift", "GOMEMLIMIT="+cmp.Or(*memoryOfDrift, "off"))
	measured := func() float64 { return metricOf(t, s.drift, "plumbline_drift_points_total") }
	pipelinetest.AwaitWithin(t, minutes, "drift to be ready", s.drift.ready)
	t.Logf("drift has read the index of cards, and is ready, after %s", time.Since(began).Round(time.Second/10))
	ready := time.Now()
	pipelinetest.AwaitWithin(t, minutes, "the first trace measured", func() bool { return measured() > 0 })
	t.Logf("the first trace measured %s after the start, %s after drift was ready, with %d states and %d cards",
		time.Since(began).Round(time.Second/10), time.Since(ready).Round(time.Second/10), len(cards), len(registered))
	s.resident("the first trace measured", s.drift)

	s.measureTraces("a trace of each agent, whose state is in the database", records[2*early:])
	warm := records[max(2*early, len(records)-20_000):]
	for i := range warm { // other traces of the agents that are certainly in memory
		warm[i] = pipelinetest.Record(warm[i].Agent, bytes.Replace(warm[i].Data, []byte(`"trace_id":"tr-`), []byte(`"trace_id":"tw-`), 1))
	}
	s.measureTraces("a trace of agents whose states are in memory", warm)
}

// measureTraces publishes traces and logs what drift takes to measure them.
func (s *site) measureTraces(what string, records []stream.Record) {
	s.t.Helper()
	began, before := time.Now(), cpuOf(s.t, s.drift.cmd.Process.Pid)
	for part := range slices.Chunk(records, 1000) { // at 2,000 a second: a burst waits in memory for the lateness
		next := time.Now().Add(time.Second / 2)
		s.publishRecords(part)
		time.Sleep(time.Until(next))
	}
	s.t.Logf("%s: %d traces published in %s", what, len(records), time.Since(began).Round(time.Second/10))
	pipelinetest.AwaitWithin(s.t, minutes, "every trace measured", s.driftIsDone)
	each := func(d time.Duration) time.Duration { return (d / time.Duration(len(records))).Round(time.Microsecond) }
	took, cpu := time.Since(began), cpuOf(s.t, s.drift.cmd.Process.Pid)-before
	s.t.Logf("%s: measured after %s, %s and %s CPU of drift each", what, took.Round(time.Second/10), each(took), each(cpu))
	s.resident(what, s.drift)
}

// exampleStates returns the states that drift stores for some agents with so many traces each.
func (s *site) exampleStates(seed uint64, traces int) (states []store.DriftState) {
	s.t.Helper()
	const agents = 25
	f := fleet.New(fleet.Config{Seed: seed, Agents: agents, Traces: agents * traces, Start: time.Now()})
	s.settleCards(slices.Values(f.Cards()))
	var records []stream.Record
	for line := range f.Lines() {
		records = append(records, pipelinetest.Record(line.Agent, line.Raw))
	}
	s.publishRecords(records)
	stage := s.service("drift")
	pipelinetest.AwaitWithin(s.t, minutes, "the states of some agents", s.driftIsDone)
	stage.terminate()
	traced, err := s.client.StreamState(s.t.Context(), stream.Traces)
	if err != nil {
		s.t.Fatal(err)
	}
	size := 0
	for _, card := range f.Cards() {
		key := store.SeriesKey{AgentID: card.AgentID, CardID: card.CardID}
		rows, err := s.store.DriftStates(s.t.Context(), traced.Created, map[int][]store.SeriesKey{subject.Partition(card.AgentID): {key}})
		if err != nil {
			s.t.Fatal(err)
		}
		for i := range rows {
			if _, err := drift.StateOf(&rows[i]); err != nil {
				s.t.Fatal(err)
			}
			size += len(rows[i].State)
		}
		states = append(states, rows...)
	}
	if len(states) == 0 {
		s.t.Fatal("no states are stored")
	}
	s.t.Logf("%d examples of states of agents with %d traces, %d bytes each", len(states), traces, size/len(states))
	return states
}

// storeStates stores a state for each card, a copy of one of the examples.
func (s *site) storeStates(examples []store.DriftState, cards []fleet.Card) {
	s.t.Helper()
	began := time.Now()
	const together = 10_000
	rows := make([]store.DriftState, 0, together)
	for i, card := range cards {
		row := examples[i%len(examples)]
		row.AgentID, row.CardID, row.Partition = card.AgentID, card.CardID, uint16(subject.Partition(card.AgentID))
		row.Applied, row.AppliedAbove, row.LastEvent = 0, nil, time.Now().Add(-24*time.Hour)
		rows = append(rows, row)
		if len(rows) < together && i < len(cards)-1 {
			continue
		}
		if err := s.store.InsertDriftStates(s.t.Context(), rows); err != nil {
			s.t.Fatal(err)
		}
		rows = rows[:0]
	}
	s.t.Logf("%d states stored in %s", len(cards), time.Since(began).Round(time.Second/10))
}

func (s *site) publishRecords(records []stream.Record) {
	s.t.Helper()
	committer := s.client.NewCommitter(stream.CommitConfig{})
	defer committer.Close()
	if _, err := committer.Publish(s.t.Context(), records); err != nil {
		s.t.Fatal(err)
	}
}

// driftIsDone reports whether drift has finished every trace.
func (s *site) driftIsDone() bool {
	left, err := s.client.DriftBacklog(s.t.Context())
	return err == nil && left == 0
}

// metricOf returns the sum of the values of a metric of a service.
func metricOf(t testing.TB, s *service, name string) (sum float64) {
	t.Helper()
	for line := range strings.Lines(metricsOf(t, s)) {
		var value float64
		if label, text, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.HasPrefix(label, name) {
			if _, err := fmt.Sscan(text, &value); err != nil {
				t.Fatal(err)
			}
			sum += value
		}
	}
	return sum
}
