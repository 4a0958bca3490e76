package drift

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

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
	if raceEnabled {
		t.Skip("starts no goroutine, and takes half a minute with the race detector: make test runs it without")
	}
	for name, lives := range map[string]func(testing.TB) *lives{"recorded": recordedLives, "recorded, with ends": endedLives, "simulated": fleetLives} {
		t.Run(name, func(t *testing.T) {
			l := lives(t)
			for _, agent := range slices.Sorted(maps.Keys(l.of)) {
				l.live(t, agent)
			}
		})
	}
}

// life is the fold of one agent's traces, each of which is applied at once.
type life struct{ *bench }

func newLife(rules func(r *Rules)) life {
	cfg := Default()
	cfg.WaitingTraces = 1
	rules(&cfg.Rules)
	return life{newBench(cfg, noCards{}, newTable())}
}

func asUsual(*Rules) {}

// entry returns the i-th trace.
func (b life) entry(i int, trace *schema.Trace, facts aapdrift.CardFacts) *entry {
	e := &entry{message: place{uint64(i + 1), noon.Add(time.Duration(i) * time.Hour)}, order: trace.Timestamp.UnixNano()}
	e.sample = aapdrift.SampleOf(trace, facts)
	e.id, e.act = fingerprintOf(e.sample.TraceID), b.reducer.acts.Of(trace)
	return e
}

// live checks the size of an agent's series after each of its traces.
func (l *lives) live(t *testing.T, agent string) {
	b := newLife(asUsual)
	most, at := 0, 0
	for i, trace := range l.of[agent] {
		facts, known := l.facts[trace.CardID]
		if !known {
			facts = aapdrift.CardFacts{CardID: trace.CardID}
		}
		e := b.entry(i, trace, facts)
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
	if most > mostAtRest {
		t.Errorf("%s takes %d bytes after %d traces, want at most %d", agent, most, at, mostAtRest)
	}
}

// publisher writes traces that make the state of its agent as large as it can.
type publisher struct {
	session func(i int) string
	long    bool // ids and names have the most bytes that are allowed, and figures are all different
	changes int  // the trace from which on the agent does something else
	random  *rand.Rand
}

// id returns an id, of 500 bytes where they are long.
func (p *publisher) id(prefix string, n int) string {
	id := fmt.Sprint(prefix, "-", n)
	if p.long {
		id += "-" + hex.EncodeToString(p.bytes(n, 250))[:500-len(id)-1]
	}
	return id
}

// bytes returns bytes that are different for each n.
func (p *publisher) bytes(n, size int) []byte {
	data := make([]byte, size)
	for i, r := 0, rand.New(rand.NewPCG(1, uint64(n))); i < size; i++ {
		data[i] = byte(r.Uint32())
	}
	return data
}

// card returns what is known of the card that the agent names.
func (p *publisher) card() aapdrift.CardFacts {
	card := &schema.Card{CardID: p.id("card", 1)}
	for i := range 8 {
		card.Values.Declared = append(card.Values.Declared, p.value(i))
	}
	return aapdrift.FactsOf(card)
}

// value returns a value whose feature, value:NAME, has the most bytes that are not replaced by a hash.
func (p *publisher) value(n int) string {
	return p.id("honesty", n)[:min(120, len(p.id("honesty", n)))]
}

// trace returns the i-th trace.
func (p *publisher) trace(i int) *schema.Trace {
	r, tool := p.random, i%40
	t := &schema.Trace{
		TraceID: p.id("trace", i), AgentID: p.id("agent", 1), CardID: p.id("card", 1), Timestamp: noon.Add(time.Duration(i) * time.Second),
		Digest: schema.DigestOf(p.bytes(i, 8)),
		Action: schema.Action{Type: schema.ActionExecute, Name: p.id("tool", tool), Category: schema.CategoryBounded},
		Decision: schema.Decision{
			Reasoning: fmt.Sprintf("%x", p.bytes(i, 60)), ValuesApplied: []string{p.value(i % 8), p.value((i + tool) % 8)},
			Confidence: float64(r.IntN(10_000)) / 10_000, HasConfidence: true,
		},
		Escalation: schema.Escalation{Present: true, Evaluated: r.IntN(2) > 0, Required: r.IntN(2) > 0},
	}
	t.Context.SessionID = p.session(i)
	t.Context.Execution = schema.Execution{Present: true, CostCents: int64(r.IntN(1 << 20))}
	if p.long {
		t.Action.Name = t.Action.Name[:110] // action_name:NAME is not replaced by a hash
		t.Action.Type = [...]schema.ActionType{schema.ActionExecute, schema.ActionRecommend, schema.ActionEscalate}[r.IntN(3)]
		t.Decision.Confidence = r.Float64()
	}
	if i >= p.changes {
		t.Action.Type, t.Context.Execution.Error, t.Decision.ValuesApplied = schema.ActionDeny, "failed", []string{"profit"}
	}
	return t
}

// No agent has a series of more than 4 KiB in memory once it rests and is not decoded, whatever it publishes and
// under each rule, and this changes no result. The publishers have 64 sessions in their baselines, many tools and
// values, and a change that lasts; others have the longest names and ids, too, and figures that are all different.
func TestNoSeriesAtRestIsLarge(t *testing.T) {
	if raceEnabled {
		t.Skip("starts no goroutine, and takes half a minute with the race detector: make test runs it without")
	}
	uuid := func(i int) string {
		sum := schema.DigestOf([]byte{byte(i % 64)})
		return fmt.Sprintf("%x-%x-4%x-a%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])[:36]
	}
	long := func(i int) string { return uuid(i) + "-and-more-bytes-in-this-id" }
	for name, c := range map[string]struct {
		rules     func(r *Rules)
		publisher publisher
		traces    int
	}{
		"64 sessions": {asUsual, publisher{session: uuid, changes: 300}, 420},
		"long ids":    {asUsual, publisher{session: long, long: true, changes: 300}, 420},
		"a larger baseline": {func(r *Rules) { r.Sessions, r.LeastTraces, r.MostTraces = aapdrift.MaxSessions, 400, 400 },
			publisher{session: long, long: true, changes: 420}, 500},
		"the published rule": {func(r *Rules) {
			r.Mode, r.Sustained, r.Window, r.SimilarityThreshold = string(aapdrift.ModeRolling), aapdrift.MaxSustained, 1000, .9
		}, publisher{session: long, long: true, changes: 200}, 420},
	} {
		t.Run(name, func(t *testing.T) {
			var listings [2][]string
			for evicts := range listings {
				p, b := c.publisher, newLife(c.rules)
				p.random = rand.New(rand.NewPCG(1, 2))
				most, left, alerts := b.publish(t, &p, c.traces, evicts == 1)
				if most <= mostAtRest || alerts == 0 || evicts == 1 && left == 0 {
					t.Fatalf("the series takes at most %d bytes, has %d events of alerts and left %d times: the test needs all of them", most, alerts, left)
				}
				t.Logf("before it leaves, the series takes at most %d bytes; it left after %d of %d traces", most, left, c.traces)
				listings[evicts] = b.states.listing()
			}
			compare(t, listings[1], listings[0])
		})
	}
}

// publish applies traces, each with a checkpoint. It returns what the series takes at most before it leaves memory, how
// often it left, and how many events of alerts it has. With evicts it checks that what stays is small.
func (b life) publish(t *testing.T, p *publisher, traces int, evicts bool) (most, left, alerts int) {
	facts := p.card()
	for i := range traces {
		e := b.entry(i, p.trace(i), facts)
		if keys, _ := b.fold.unknown([]*entry{e}); len(keys) > 0 {
			if err := b.fold.resume(b.states.statesOf(keys)); err != nil {
				t.Fatal(err)
			}
		}
		b.fold.receive(e)
		b.finish()
		y := b.take()
		alerts += len(y.alerts)
		b.states.insert(y)
		b.fold.stored()
		most = max(most, b.fold.series[e.key()].inMemory())
		if !evicts {
			continue
		}
		b.take() // without a trace since the last one it is not decoded any more
		b.fold.evict(math.MaxInt)
		if c := b.fold.series[e.key()]; c == nil {
			left++
		} else if c.content != nil || c.inMemory() > mostAtRest {
			t.Fatalf("after %d traces a series takes %d bytes, decoded: %t", i+1, c.inMemory(), c.content != nil)
		}
	}
	return most, left, alerts
}

// A stage drops a large series while nothing arrives, keeps a small one, and reads the large one for its next trace.
func TestLargeSeriesLeavesAQuietStage(t *testing.T) {
	s := newScene(t, fleet.Config{Seed: 1, Agents: 1, Traces: 1})
	s.cfg.BatchAge, s.cfg.Lateness = 20*time.Millisecond, time.Millisecond
	began := time.Now().Add(-time.Hour)
	trace := func(agent string, i int) stream.Record {
		raw := usual(fmt.Sprint("tr-", i), agent, began.Add(time.Duration(i)*time.Second))
		session := fmt.Sprintf(`"session_id":"%064d"`, i)
		return pipelinetest.Record(agent, bytes.Replace(raw, []byte(`"session_id":"s"`), []byte(session), 1))
	}
	records := []stream.Record{trace("small", 0)}
	for i := range 45 { // fewer than a baseline needs
		records = append(records, trace("large", i))
	}
	process := s.stage(s.connect())
	worker := pipelinetest.Go(t, s.sharing(process))
	inMemory := func() (agents []string) {
		for _, p := range process.partitions {
			p.mu.Lock()
			for key := range p.fold.series {
				agents = append(agents, key.AgentID)
			}
			p.mu.Unlock()
		}
		return agents
	}
	metric := func(name string) float64 { return pipelinetest.Metric(t, process.env, name, "") }
	s.Publish(t, records...)
	pipelinetest.Await(t, "points of all traces", func() bool { return metric("plumbline_drift_points_total") == float64(len(records)) })
	pipelinetest.Await(t, "the large series left", func() bool { return slices.Equal(inMemory(), []string{"small"}) })
	before := metric("plumbline_drift_series_read_total")
	s.Publish(t, trace("large", 45))
	pipelinetest.Await(t, "the point of one more trace", func() bool { return metric("plumbline_drift_points_total") == float64(len(records)+1) })
	if read := metric("plumbline_drift_series_read_total") - before; read != 1 {
		t.Errorf("%v states are read for a trace of a series that left", read)
	}
	worker.Stop(t)
	s.checkReplay()
}
