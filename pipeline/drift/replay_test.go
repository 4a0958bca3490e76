package drift

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// watched returns a scene that the stage has processed completely.
func watched(t *testing.T) *scene {
	t.Helper()
	s := newScene(t, fleet.Config{Seed: 7, Agents: 12, Traces: 700})
	s.publish()
	s.watch()
	return s
}

// watch runs the stage until it has acked everything.
func (s *scene) watch() {
	s.t.Helper()
	stage := pipelinetest.Go(s.t, func(ctx context.Context) error { return Serve(ctx, &s.cfg, pipelinetest.Env(s.t, "drift")) })
	pipelinetest.Await(s.t, "every message acknowledged", s.done)
	stage.Stop(s.t)
}

func (s *scene) replayOf() *Replay {
	return &Replay{Rules: s.cfg.Rules, Client: s.Client, Store: s.Store, Log: pipelinetest.Env(s.t, "replay").Log}
}

// replay runs a replay, and requires that nothing differs.
func (s *scene) replay(r *Replay) *ReplaySummary {
	s.t.Helper()
	summary, err := r.Run(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	if len(summary.Differing) != 0 {
		s.t.Errorf("the replay differs in %+v", summary.Differing)
	}
	return summary
}

func (s *ReplaySummary) written() int {
	return s.PointsWritten + s.AlertsWritten + s.BaselinesWritten + s.LoopsWritten
}

// A replay restores exactly what is missing, alerts under their ids, each once.
func TestReplayRestoresTheSameResults(t *testing.T) {
	s := watched(t)
	before := s.stored()
	whole := s.replay(s.replayOf())
	if whole.written() != 0 || whole.Unchanged != whole.Points || whole.Points != s.fleet.Planted().Stored {
		t.Errorf("with nothing missing: %+v", whole)
	}
	for _, table := range []string{"drift_points", "drift_alerts", "loop_alerts", "drift_baselines"} {
		s.Exec(t, "ALTER TABLE %s DELETE WHERE cityHash64(agent_id) %% 2 = 0", table)
	}
	some := s.replay(s.replayOf())
	compare(t, s.stored(), before)
	if some.PointsWritten == 0 || some.BaselinesWritten == 0 || some.Points != whole.Points {
		t.Errorf("some missing: %+v", some)
	}
	for _, table := range []string{"drift_points", "drift_alerts", "loop_alerts", "drift_baselines"} {
		s.Exec(t, "ALTER TABLE %s DELETE WHERE 1", table)
	}
	all := s.replay(s.replayOf())
	compare(t, s.stored(), before)
	events := 0 // an alert may have been closed, too
	for _, line := range before {
		if strings.HasPrefix(line, "alert ") {
			events++
		}
	}
	if events < len(s.fleet.Planted().Drift) || all.AlertsWritten != events || all.PointsWritten != s.fleet.Planted().Stored {
		t.Errorf("all missing: %+v, stored %d events of alerts, planted %d points", all, events, s.fleet.Planted().Stored)
	}
	if loops := s.fleet.Planted().SessionFindings[schema.ActionLoop]; all.LoopsWritten != len(loops) || len(loops) == 0 {
		t.Errorf("%d alerts about loops are stored again, planted %q", all.LoopsWritten, loops)
	}
	if again := s.replay(s.replayOf()); again.written() != 0 {
		t.Errorf("again: %+v", again)
	}
	s.checkReplay() // alert messages too: the same ids
}

// A replay writes nothing for a series with a stored point of another value, and nothing outside
// the bounds.
func TestReplayDoesNotTouchWhatDiffers(t *testing.T) {
	s := watched(t)
	first := s.read(stream.Traces)[0].Agent
	s.Exec(t, "ALTER TABLE drift_points DELETE WHERE stream_sequence %% 2 = 0")
	s.Exec(t, "ALTER TABLE drift_points UPDATE status = 'forged' WHERE agent_id = '%s' AND stream_sequence %% 2 = 1", first)
	points := s.points()
	r := s.replayOf()
	r.Agent = first
	summary, err := r.Run(t.Context())
	if err != nil || len(summary.Differing) == 0 || summary.Differing[0].AgentID != first || summary.written() != 0 {
		t.Errorf("one agent: %+v, error %v", summary, err)
	}
	r = s.replayOf()
	r.From, r.To = 200, 399
	summary, err = r.Run(t.Context())
	if err != nil || summary.PointsWritten == 0 || summary.PointsWritten > 100 || s.points() != points+uint64(summary.PointsWritten) {
		t.Errorf("a range: %+v, error %v", summary, err)
	}
	summary, err = s.replayOf().Run(t.Context())
	if err != nil || slices.ContainsFunc(summary.Differing, func(c Series) bool { return c.AgentID != first }) || summary.PointsWritten == 0 {
		t.Errorf("all: %+v, error %v", summary, err)
	}
}

func (s *scene) points() uint64 {
	s.t.Helper()
	counts, err := s.Store.Counts(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return counts.DriftPoints
}

// While the stage works, a replay does not change the result. After an interruption it can be run
// again.
func TestReplayWhileTheStageWorks(t *testing.T) {
	s := newScene(t, fleet.Config{Seed: 9, Agents: 12, Traces: 600})
	s.publishLines(s.lines[:len(s.lines)/2])
	s.watch()
	s.Exec(t, "ALTER TABLE drift_points DELETE WHERE stream_sequence %% 3 = 0")
	s.publishLines(s.lines[len(s.lines)/2:])
	stage := pipelinetest.Go(t, func(ctx context.Context) error { return Serve(ctx, &s.cfg, pipelinetest.Env(t, "drift")) })
	ctx, cancel := context.WithCancel(t.Context())
	r := s.replayOf()
	r.Progress = func(int) { cancel() }
	if _, err := r.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: error %v", err)
	}
	pipelinetest.Await(t, "every message acknowledged", func() bool {
		s.replay(s.replayOf())
		return s.done()
	})
	stage.Stop(t)
	s.checkReplay()
}
