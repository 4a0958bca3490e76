package drift

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest/sim"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// Whatever fails, hangs, is lost, repeated or killed, baselines, points, alerts and loops equal those of
// an undisturbed fold of the stream, and no trace is recorded as done unless a durable state lists it. Two
// processes may share the partitions.
func TestSimulation(t *testing.T) {
	sim.Run(t, 60, func(t *testing.T, w *sim.World) {
		s := newSimulation(t, w)
		w.Go(s.publish)
		var processes sync.WaitGroup
		for i := range 1 + w.Dice("processes").IntN(2) {
			processes.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				w.Live(s.done, s.process)
			})
		}
		processes.Wait()
		w.Check(s.check)
	})
}

// simulation holds the durable state other than the streams.
type simulation struct {
	t *testing.T
	w *sim.World

	cfg            Config
	traces, alerts *sim.Stream
	consumers      [subject.Partitions]*sim.Consumer // of an earlier version
	members        *sim.Members
	tables         *table
	published      bool
}

func newSimulation(t *testing.T, w *sim.World) *simulation {
	t.Helper()
	dice := w.Dice("configuration")
	s := &simulation{t: t, w: w, cfg: Default(), traces: w.Stream(stream.Traces), alerts: w.Stream(stream.Alerts), tables: newTable()}
	if dice.IntN(4) > 0 { // most runs have too few traces for a baseline of sessions
		s.cfg.Mode = "first"
	}
	s.cfg.Lateness = time.Duration(dice.Int64N(int64(3 * time.Second)))
	s.cfg.WaitingTraces, s.cfg.BatchRows = 3+dice.IntN(40), 1+dice.IntN(20)
	s.cfg.BatchAge, s.cfg.CheckpointAge = time.Second, time.Duration(1+dice.IntN(5))*time.Second
	s.cfg.ResidentBytes = int64(dice.IntN(3)) * subject.Partitions * 1000
	for p := range s.consumers {
		s.consumers[p] = s.traces.Partition(stream.DriftConsumer(p), p)
	}
	s.members = w.Members(stream.DriftOwners, s.traces)
	s.members.Finished = s.acked
	return s
}

// publish publishes traces in and out of order, too late, dated ahead, copied, with two contents,
// requests to end a session, and messages that are invalid.
func (s *simulation) publish() {
	dice := s.w.Dice("workload")
	var published []sim.Stored
	for n := range 20 + dice.IntN(60) {
		time.Sleep(time.Duration(dice.Int64N(int64(700 * time.Millisecond))))
		agent := []string{"a", "b", "c"}[dice.IntN(3)]
		id, at, write := fmt.Sprintf("tr-%03d", n), time.Now(), usual
		if dice.IntN(4) > 0 {
			write = again
		}
		var copied []byte
		switch kind := dice.IntN(15); {
		case kind < 4:
			at = at.Add(-time.Duration(dice.Int64N(int64(4 * time.Second))))
		case kind < 9:
			write, at = odd, at.Add(-time.Duration(dice.Int64N(int64(1500*time.Millisecond))))
		case kind == 9:
			at = at.AddDate(50, 0, 0)
		case kind == 10:
			id = fmt.Sprintf("tr-%03d", max(0, n-1-dice.IntN(8)))
		case kind == 11 && n > 0:
			earlier := published[dice.IntN(n)]
			agent, copied = earlier.Agent, earlier.Data
		case kind == 12:
			copied = requestedEnd(agent, "s")
		}
		raw := write(id, agent, at)
		if copied != nil {
			raw = copied
		} else if dice.IntN(20) == 0 {
			raw = raw[:len(raw)-1]
		}
		m := sim.Stored{Subject: subject.Trace(agent), Agent: agent, Partition: subject.Partition(agent), Data: raw}
		s.traces.Publish(m)
		published = append(published, m)
	}
	s.w.Within(func() { s.published = true })
}

// process runs the stage as Serve composes it.
func (s *simulation) process(ctx context.Context, p *sim.Process) error {
	running := &stage{
		cfg: &s.cfg, env: p.Env, rows: &simulatedRows{s, p}, outlet: p.Broker(),
		registry: noCards{}, metrics: newMetrics(p.Env.Metrics), now: time.Now,
	}
	broker := p.Broker(s.consumers[:]...)
	owners := s.members.Owners(ctx, p, s.cfg.TakeoverAfter)
	owners.Earlier = func(ctx context.Context, partition int) (stream.Progress, error) {
		return broker.ConsumerProgress(ctx, stream.Traces, stream.DriftConsumer(partition))
	}
	return running.build().share(ctx, owners)
}

// simulatedRows is the view of a process on the tables.
type simulatedRows struct {
	*simulation
	process *sim.Process
}

// insertLimit is how long an insert may take.
const insertLimit = 90 * time.Second

// insertEach stores rows one by one, so a failed insert may have stored some of them.
func insertEach[T any](ctx context.Context, r *simulatedRows, name string, rows []T, key func(*T) string, insert func([]T)) error {
	o := sim.Operation{Name: name, Limit: insertLimit}
	return sim.EachOf(ctx, r.process, o, rows, key, func(row *T) error {
		insert([]T{*row})
		return nil
	})
}

func (r *simulatedRows) InsertDriftBaselines(ctx context.Context, rows []store.DriftBaseline) error {
	return insertEach(ctx, r, "insert baselines", rows, func(b *store.DriftBaseline) string { return b.BaselineID.String() }, r.tables.insertBaselines)
}

func (r *simulatedRows) InsertDriftPoints(ctx context.Context, rows []store.DriftPoint) error {
	return insertEach(ctx, r, "insert points", rows, func(p *store.DriftPoint) string { return fmt.Sprintf("from %04d", p.Sequence) }, r.tables.insertPoints)
}

func (r *simulatedRows) InsertDriftAlerts(ctx context.Context, rows []store.DriftAlert) error {
	return insertEach(ctx, r, "insert alerts", rows, func(a *store.DriftAlert) string { return wire.DriftAlertID(&a.DriftAlert) }, r.tables.insertAlerts)
}

func (r *simulatedRows) InsertLoopAlerts(ctx context.Context, rows []store.LoopAlert) error {
	return insertEach(ctx, r, "insert loops", rows, func(a *store.LoopAlert) string { return a.AlertID.String() }, r.tables.insertLoops)
}

func (r *simulatedRows) InsertDriftStates(ctx context.Context, rows []store.DriftState) error {
	return insertEach(ctx, r, "insert states", rows, func(s *store.DriftState) string { return s.AgentID }, r.tables.insertStates)
}

// CardFacts is not called: the simulation has no cards.
func (r *simulatedRows) CardFacts(context.Context, []string) ([]store.CardFacts, error) {
	return nil, errors.New("the simulation has no rows of cards")
}

func (r *simulatedRows) DriftStates(ctx context.Context, _ time.Time, series map[int][]store.SeriesKey) (states []store.DriftState, err error) {
	o := sim.Operation{Name: "select states", Key: fmt.Sprint(len(series), " partitions")}
	err = r.process.Do(ctx, o, func() error {
		states = nil
		for _, keys := range series {
			states = append(states, r.tables.statesOf(keys)...)
		}
		return nil
	})
	return states, err
}

func (r *simulatedRows) FirstMeasured(ctx context.Context, created time.Time, traces []store.TraceTime) (first map[schema.Digest]uint64, err error) {
	o := sim.Operation{Name: "select first points", Key: fmt.Sprint(len(traces), " traces")}
	err = r.process.Do(ctx, o, func() error {
		first = r.tables.firstMeasured(created, traces)
		return nil
	})
	return first, err
}

func (r *simulatedRows) DriftStatesOf(ctx context.Context, _ time.Time, agents map[int][]string) (states []store.DriftState, err error) {
	o := sim.Operation{Name: "select states of agents", Key: fmt.Sprint(len(agents), " partitions")}
	err = r.process.Do(ctx, o, func() error {
		states = nil
		for _, of := range agents {
			states = append(states, r.tables.allOf(of)...)
		}
		return nil
	})
	return states, err
}

// acked requires that a durable state lists the message, and that its trace has a point. A copy
// has no point of its own, and does not wait for that of the first.
func (s *simulation) acked(sequence uint64) {
	m := s.traces.At(sequence)
	trace, err := schema.Admit(m.Agent, m.Data)
	if err != nil {
		return
	}
	state := s.tables.states[seriesKey{AgentID: trace.AgentID, CardID: trace.CardID}]
	if sequence > state.Applied && !slices.Contains(state.AppliedAbove, sequence) {
		s.w.Wrong("message %d is recorded as done and no state names it", sequence)
	}
	first := slices.IndexFunc(s.traces.Stored, func(earlier sim.Stored) bool { return bytes.Equal(earlier.Data, m.Data) })
	if _, found := s.tables.points[trace.AgentID+"/"+trace.CardID+"/"+trace.TraceID+"/"+trace.Digest.String()]; !found && first+1 == int(sequence) {
		s.w.Wrong("message %d is recorded as done and its trace has no point", sequence)
	}
}

// done reports whether everything is recorded as done.
func (s *simulation) done() bool { return s.published && s.members.Done() }

// check compares the tables with a fold in memory.
func (s *simulation) check() {
	want := newTable()
	for p := range subject.Partitions {
		if messages := s.messages(p); len(messages) > 0 {
			part := foldAll(s.cfg, noCards{}, messages)
			for id, baseline := range part.baselines {
				want.baselines[id] = baseline
			}
			for key, point := range part.points {
				want.points[key] = point
			}
			for id, alert := range part.alerts {
				want.alerts[id] = alert
			}
			for id, loop := range part.loops {
				want.loops[id] = loop
			}
			for key, state := range part.states {
				want.states[key] = state
			}
		}
	}
	compare(wrongs{s.w}, s.tables.listing(), want.listing())
	if got := s.tables.finished(); got != want.finished() {
		s.w.Wrong("the states name %d messages, want %d", got, want.finished())
	}
	s.checkAlerts()
}

// messages returns the messages of a partition.
func (s *simulation) messages(partition int) (messages []stream.Message) {
	for i, m := range s.traces.Stored {
		if m.Partition == partition {
			messages = append(messages, message(uint64(i+1), m.Agent, m.Received, m.Data))
		}
	}
	return messages
}

// checkAlerts requires that the published alerts and loops equal those in the tables.
func (s *simulation) checkAlerts() {
	published := map[string]bool{}
	for i := range s.alerts.Stored {
		published[s.alerts.Stored[i].ID] = true
	}
	if len(published) != len(s.tables.alerts)+len(s.tables.loops) {
		s.w.Wrong("%d alerts are published, the tables have %d and %d loops", len(published), len(s.tables.alerts), len(s.tables.loops))
	}
	for id := range s.tables.loops {
		if !published[id] {
			s.w.Wrong("the loop %s is not published", id)
		}
	}
	for _, a := range s.tables.alerts {
		if id := wire.DriftAlertID(&a.DriftAlert); !published[id] {
			s.w.Wrong("alert %s is not published", id)
		}
	}
}

// wrongs collects the differences of two listings.
type wrongs struct{ w *sim.World }

func (w wrongs) Errorf(format string, args ...any) { w.w.Wrong(format, args...) }
