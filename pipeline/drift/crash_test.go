package drift

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/pipeline/ownership"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

var errCrash = errors.New("the process died here")

// crash is a process that crashes at the first call of one operation, before or after the call
// took effect. All its later calls do nothing.
type crash struct {
	operation string
	after     bool
	die       context.CancelFunc
	dead      atomic.Bool
	rows      Rows
	outlet    Outlet
	Source
}

func (c *crash) call(operation string, rows int, effect func() error) error {
	if c.dead.Load() {
		return errCrash
	}
	if operation != c.operation || rows == 0 {
		return effect()
	}
	if c.after {
		if err := effect(); err != nil {
			return err
		}
	}
	c.dead.Store(true)
	c.die()
	return errCrash
}

func (c *crash) CardFacts(ctx context.Context, agents []string) ([]store.CardFacts, error) {
	return c.rows.CardFacts(ctx, agents)
}

func (c *crash) DriftStates(ctx context.Context, created time.Time, series map[int][]store.SeriesKey) ([]store.DriftState, error) {
	return c.rows.DriftStates(ctx, created, series)
}

func (c *crash) DriftStatesOf(ctx context.Context, created time.Time, agents map[int][]string) ([]store.DriftState, error) {
	return c.rows.DriftStatesOf(ctx, created, agents)
}

func (c *crash) FirstMeasured(ctx context.Context, created time.Time, traces []store.TraceTime) (map[schema.Digest]uint64, error) {
	return c.rows.FirstMeasured(ctx, created, traces)
}

func (c *crash) InsertDriftBaselines(ctx context.Context, baselines []store.DriftBaseline) error {
	return c.call("baselines", len(baselines), func() error { return c.rows.InsertDriftBaselines(ctx, baselines) })
}

func (c *crash) InsertDriftPoints(ctx context.Context, points []store.DriftPoint) error {
	return c.call("points", len(points), func() error { return c.rows.InsertDriftPoints(ctx, points) })
}

func (c *crash) InsertDriftAlerts(ctx context.Context, alerts []store.DriftAlert) error {
	return c.call("alerts", len(alerts), func() error { return c.rows.InsertDriftAlerts(ctx, alerts) })
}

func (c *crash) InsertLoopAlerts(ctx context.Context, alerts []store.LoopAlert) error {
	return c.call("loops", len(alerts), func() error { return c.rows.InsertLoopAlerts(ctx, alerts) })
}

func (c *crash) InsertDriftStates(ctx context.Context, states []store.DriftState) error {
	return c.call("states", len(states), func() error { return c.rows.InsertDriftStates(ctx, states) })
}

func (c *crash) PublishAlerts(ctx context.Context, alerts []wire.Alert) error {
	return c.call("publish", len(alerts), func() error { return c.outlet.PublishAlerts(ctx, alerts) })
}

func (c *crash) Done(ctx context.Context, through uint64) error {
	return c.call("done", 1, func() error { return c.Source.Done(ctx, through) })
}

// TestCrashesLoseAndDuplicateNothing crashes one process after the other, at every step of a commit,
// and compares the result with an uninterrupted fold. The processes keep no series in memory that
// may leave it.
func TestCrashesLoseAndDuplicateNothing(t *testing.T) {
	s := newScene(t, fleet.Config{Seed: 11, Agents: 20, Traces: 1200})
	s.cfg.Lateness, s.cfg.BatchAge, s.cfg.BatchRows = time.Millisecond, 20*time.Millisecond, 25
	s.cfg.ResidentBytes = 0 // each series leaves memory as soon as it may
	s.publishLines(s.lines[:len(s.lines)/2])
	s.endSessions()
	s.publishLines(s.lines[len(s.lines)/2:])
	for _, operation := range []string{"baselines", "alerts", "publish", "loops", "points", "states", "done"} {
		if operation == "loops" { // those of the fleet may be stored by now
			s.publishLoop()
		}
		for _, after := range []bool{false, true} {
			s.runUntilCrash(operation, after)
		}
	}
	s.finish()
	s.check()
}

// publishLoop publishes a run of equal actions, whose tenth makes it a loop.
func (s *scene) publishLoop() {
	s.t.Helper()
	cards, now := s.fleet.Cards(), time.Now().UTC()
	card := cards[len(cards)-1] // its agent does not drift
	var run []stream.Record
	for i := range 12 {
		raw := fmt.Appendf(nil, `{"trace_id":"loop-%d","agent_id":%q,"card_id":%q,"timestamp":%q,
			"action":{"type":"execute","name":"search","category":"bounded","parameters":{"query":"the same"}},
			"decision":{"alternatives_considered":[{"option_id":"o","description":"d"}],"selected":"o","selection_reasoning":"r","values_applied":["honesty"]},
			"context":{"session_id":"looping"}}`, i, card.AgentID, card.CardID, now.Add(time.Duration(i)*time.Millisecond).Format(time.RFC3339Nano))
		run = append(run, pipelinetest.Record(card.AgentID, raw))
	}
	s.Publish(s.t, run...)
	s.loops = append(s.loops, "loop-9")
}

// endSessions requests the end of a session of each agent.
func (s *scene) endSessions() {
	s.t.Helper()
	for _, card := range s.fleet.Cards() {
		end := wire.EndRequest{AgentID: card.AgentID, SessionID: "s"}
		if err := s.Client.RequestEnd(s.t.Context(), subject.Partition(card.AgentID), end); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *scene) runUntilCrash(operation string, after bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute) // if nothing of the kind is left to commit
	defer cancel()
	client := s.connect()
	process := s.stage(client)
	process.env.DrainBudget = 0
	c := &crash{operation: operation, after: after, die: cancel, rows: process.rows, outlet: process.outlet}
	process.rows, process.outlet = c, c
	owners, err := ownersOn(ctx, process.cfg, process.env, client)
	if err != nil {
		s.t.Fatal(err)
	}
	member, err := ownership.Join(ctx, owners)
	if err != nil {
		s.t.Fatal(err)
	}
	err = member.Run(ctx, func(ctx context.Context, term *ownership.Term) error {
		c.Source = term
		process.source = c
		return process.run(ctx)
	})
	if err == nil || !c.dead.Load() {
		s.t.Fatalf("crash at %s (after it: %v): ended with %v", operation, after, err)
	}
}
