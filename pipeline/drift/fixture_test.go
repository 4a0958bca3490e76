package drift

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

func TestMain(m *testing.M) { pipelinetest.Main(m) }

// noCards is a registry without cards.
type noCards struct{}

func (noCards) Lookup(context.Context, string) (*cards.Card, error) { return nil, cards.ErrUnknown }
func (noCards) Relies() bool                                        { return false }
func (noCards) Knows(string) bool                                   { return true }
func (noCards) KnowRetention(map[string]uint32)                     {}
func (noCards) RetainUntil(string, time.Time) time.Time             { return time.Time{} }

// publishedRule returns a configuration that applies the published rule, for which a few traces are
// enough.
func publishedRule() Config {
	cfg := Default()
	cfg.Mode = "first"
	return cfg
}

// noon is when the messages of tests without a broker begin to arrive.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// usual and odd return the raw bytes of a trace that is similar to an agent's usual ones, and of
// one that is not.
func usual(id, agent string, at time.Time) []byte {
	return pipelinetest.Trace(id, agent, "ac-"+agent, "s", at.Format(time.RFC3339Nano), "search").Data
}

// again returns the raw bytes of a usual trace that does the same as every other of them.
func again(id, agent string, at time.Time) []byte {
	return bytes.Replace(usual(id, agent, at), []byte(`"name":"search","category":"bounded"`),
		[]byte(`"name":"search","category":"escalation_trigger","parameters":{"order":1}`), 1)
}

func odd(id, agent string, at time.Time) []byte {
	return fmt.Appendf(nil, `{"trace_id":%q,"agent_id":%q,"card_id":%q,"timestamp":%q,`+
		`"action":{"type":"escalate","name":"panic","category":"escalation_trigger"},`+
		`"decision":{"alternatives_considered":[{"option_id":"o","description":"d"}],"selected":"o","selection_reasoning":"r",`+
		`"values_applied":["speed","profit"],"confidence":0.2}}`, id, agent, "ac-"+agent, at.Format(time.RFC3339Nano))
}

// requestedEnd returns the raw bytes of a request to end a session.
func requestedEnd(agent, session string) []byte {
	m, err := wire.EndRequest{AgentID: agent, SessionID: session}.AmongTraces()
	if err != nil {
		panic(err)
	}
	return m.Data
}

// message returns a message of partition 0.
func message(sequence uint64, agent string, received time.Time, raw []byte) stream.Message {
	return stream.Message{Data: raw, Agent: agent, Sequence: sequence, Received: received}
}

// table keeps rows as the database does: for each key the one with the earliest arrival, and
// among those the row inserted last; for a state the highest version.
type table struct {
	baselines map[schema.Digest]store.DriftBaseline
	points    map[string]store.DriftPoint
	alerts    map[store.DriftAlertKey]store.DriftAlert
	loops     map[string]store.LoopAlert // by the id of the message
	states    map[seriesKey]store.DriftState
}

func newTable() *table {
	return &table{map[schema.Digest]store.DriftBaseline{}, map[string]store.DriftPoint{}, map[store.DriftAlertKey]store.DriftAlert{}, map[string]store.LoopAlert{}, map[seriesKey]store.DriftState{}}
}

func (t *table) insertBaselines(baselines []store.DriftBaseline) {
	for _, b := range baselines {
		t.baselines[b.BaselineID] = b
	}
}

func (t *table) insertPoints(points []store.DriftPoint) {
	for _, p := range points {
		key := p.AgentID + "/" + p.CardID + "/" + p.TraceID + "/" + p.TraceDigest.String()
		if old, ok := t.points[key]; !ok || !old.Received.Before(p.Received) {
			t.points[key] = p
		}
	}
}

// firstMeasured returns the sequences of the points of traces.
func (t *table) firstMeasured(created time.Time, traces []store.TraceTime) map[schema.Digest]uint64 {
	first := map[schema.Digest]uint64{}
	for _, p := range t.points {
		if p.StreamCreated.Equal(created) && slices.ContainsFunc(traces, func(of store.TraceTime) bool { return of.Digest == p.TraceDigest }) {
			first[p.TraceDigest] = p.Sequence
		}
	}
	return first
}

func (t *table) insertAlerts(alerts []store.DriftAlert) {
	for _, a := range alerts {
		t.alerts[a.Key()] = a
	}
}

func (t *table) insertStates(states []store.DriftState) {
	for _, s := range states {
		key := seriesKey{AgentID: s.AgentID, CardID: s.CardID}
		if old, ok := t.states[key]; !ok || old.Version <= s.Version {
			t.states[key] = s
		}
	}
}

func (t *table) insert(y *batch) {
	t.insertBaselines(y.baselines)
	t.insertPoints(y.points)
	t.insertAlerts(y.alerts)
	t.insertLoops(y.loops)
	t.insertStates(y.states)
}

func (t *table) insertLoops(loops []store.LoopAlert) {
	for _, l := range loops {
		t.loops[session.LoopAlertPrefix+l.AlertID.String()] = l
	}
}

// statesOf returns the states of series, in any order.
func (t *table) statesOf(keys []seriesKey) []store.DriftState {
	var states []store.DriftState
	for _, key := range keys {
		if s, ok := t.states[key]; ok {
			states = append(states, s)
		}
	}
	return states
}

// allOf returns the states of all series of agents, in any order.
func (t *table) allOf(agents []string) []store.DriftState {
	var states []store.DriftState
	for key, s := range t.states {
		if slices.Contains(agents, key.AgentID) {
			states = append(states, s)
		}
	}
	return states
}

// finished returns the sum of the versions.
func (t *table) finished() (n uint64) {
	for _, s := range t.states {
		n += s.Version
	}
	return n
}

// listing returns one line for each baseline, point, alert and loop, sorted. Listings must be equal.
func (t *table) listing() []string {
	var lines []string
	for _, b := range t.baselines {
		lines = append(lines, baselineLine(&b))
	}
	for _, p := range t.points {
		lines = append(lines, pointLine(&p))
	}
	for _, a := range t.alerts {
		lines = append(lines, alertLine(&a.DriftAlert))
	}
	for _, l := range t.loops {
		lines = append(lines, loopLine(&l))
	}
	slices.Sort(lines)
	return lines
}

func pointLine(p *store.DriftPoint) string {
	similarity := "-"
	if p.Similarity != nil {
		similarity = fmt.Sprintf("%.9f", *p.Similarity)
	}
	return fmt.Sprintf("point %s %s %s %.8s %s %s %d %s %.8s", p.AgentID, p.CardID, p.TraceID, p.TraceDigest, p.Status, similarity, p.Streak, p.Mode, p.BaselineID)
}

func baselineLine(b *store.DriftBaseline) string {
	return fmt.Sprintf("baseline %s %s %.8s %s %d %v %v", b.AgentID, b.CardID, b.BaselineID, b.Mode, b.Traces, b.TraceIDs, b.Weights)
}

func loopLine(l *store.LoopAlert) string {
	return fmt.Sprintf("loop %d %+v", l.Sequence, l.LoopAlert)
}

func alertLine(a *schema.DriftAlert) string {
	return fmt.Sprintf("alert %s %s %v %s %v %s %.8s %s %s %s %s %d %v %v %s", a.AgentID, a.CardID, a.TraceIDs, wire.DriftAlertID(a), a.Analysis, a.Mode, a.BaselineID,
		a.State, a.OpenedAt.UTC(), a.ClosedAt.UTC(), a.LastTraceID, a.Count, a.Strength, a.Measures, a.Summary)
}

// compare reports the first lines in which two listings differ.
func compare(t interface{ Errorf(string, ...any) }, got, want []string) {
	missing, extra := difference(want, got), difference(got, want)
	for _, line := range missing[:min(5, len(missing))] {
		t.Errorf("missing: %s", line)
	}
	for _, line := range extra[:min(5, len(extra))] {
		t.Errorf("too many: %s", line)
	}
	if len(missing)+len(extra) == 0 && len(got) != len(want) {
		t.Errorf("%d lines, want %d: some are duplicates", len(got), len(want))
	}
}

func difference(a, b []string) (only []string) {
	for _, line := range a {
		if _, found := slices.BinarySearchFunc(b, line, cmp.Compare); !found {
			only = append(only, line)
		}
	}
	return only
}

// bench folds messages in memory. It continues from the states of a table.
type bench struct {
	cfg     Config
	reducer *reducer
	fold    *fold
	states  *table // nil: there are none
	at      uint64 // the position of the last take
}

func newBench(cfg Config, registry Registry, states *table) *bench {
	b := &bench{cfg: cfg, reducer: newReducer(registry), states: states}
	pins, err := b.cfg.pins()
	if err != nil {
		panic(err)
	}
	b.fold = newFold(0, noon, &b.cfg.Rules, pins, registry.RetainUntil)
	return b
}

// learnSoon makes baselines of mode sessions of few traces.
func (b *bench) learnSoon() {
	if p := &b.fold.params; p.Mode == aapdrift.ModeSessions {
		p.Sessions, p.LeastTraces, p.MostTraces = 2, 4, 24
	}
}

func (b *bench) receive(m stream.Message) {
	e, err := b.reducer.reduce(context.Background(), m)
	if err != nil {
		panic(err)
	}
	if keys, agents := b.fold.unknown([]*entry{e}); b.states != nil {
		if err := b.fold.resume(append(b.states.statesOf(keys), b.states.allOf(agents)...)); err != nil {
			panic(err)
		}
		for _, e := range b.fold.doubtful(nil, []*entry{e}) {
			e.copiedFrom(b.states.firstMeasured(noon, []store.TraceTime{{Digest: e.sample.Digest, EventTime: e.sample.EventTime}}))
		}
	}
	b.fold.receive(e)
}

// finish makes all traces due.
func (b *bench) finish() { b.fold.idle(24 * time.Hour) }

func (b *bench) take() *batch {
	return b.takeAt(true)
}

func (b *bench) takeAt(checkpoint bool) *batch {
	y := new(batch)
	if err := b.fold.take(y, checkpoint); err != nil {
		panic(err)
	}
	if checkpoint {
		b.at = b.fold.floor(b.fold.position)
	}
	return y
}

// foldAll folds messages without interruption.
func foldAll(cfg Config, registry Registry, messages []stream.Message) *table {
	return newBench(cfg, registry, nil).foldAll(messages)
}

func (b *bench) foldAll(messages []stream.Message) *table {
	for _, m := range messages {
		b.receive(m)
	}
	b.finish()
	done := newTable()
	done.insert(b.take())
	return done
}
