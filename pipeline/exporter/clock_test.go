package exporter

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// Whatever the exporter's wall clock does, each session is sealed once and none because of the
// clock. What is sealed later is not dated earlier, and its rows replace earlier ones.
func TestClockJumps(t *testing.T) {
	rig, cfg := site(t)
	var ahead atomic.Int64 // offset of the wall clock
	wall := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	pipelinetest.Go(t, func(ctx context.Context) error { return exportingBy(ctx, t, wall, rig, cfg, &pipelinetest.Fault{}) })
	rig.Publish(t, numbered("tr-open", "open", 1, ""))
	seal := func(session string, jump time.Duration) {
		t.Helper()
		ahead.Store(int64(jump))
		publishGaps(t, rig, session)
		pipelinetest.Await(t, "session "+session, func() bool { return sealedRecord(t, rig, session) })
	}
	seal("before", 0)
	seal("a day back", -24*time.Hour)
	rig.Publish(t, numbered("tr-4", "before", 4, ""))
	requestEnd(t, rig, "before")
	pipelinetest.Await(t, "the second part", func() bool { return parts(t, rig, "before") == 2 })
	seal("a day ahead", 24*time.Hour)
	seal("correct", 0)
	seal("a step back", -3*time.Second)

	for session, want := range map[string]int{"open": 0, "before": 2, "a day back": 1, "a day ahead": 1, "correct": 1, "a step back": 1} {
		if got := parts(t, rig, session); got != want {
			t.Errorf("session %s has %d bundles, want %d", session, got, want)
		}
	}
	pipelinetest.Await(t, "the newest row of a session", func() bool {
		for s, err := range rig.Store.RecordedSessions(t.Context()) {
			if err == nil && s.SessionID == "before" {
				return s.Bundles == 2
			}
		}
		return false
	})
}

func parts(t *testing.T, rig *pipelinetest.Rig, session string) int {
	t.Helper()
	bundles, err := rig.Store.Bundles(t.Context(), "a", session)
	if err != nil {
		t.Fatal(err)
	}
	return len(bundles)
}

// The clock follows the wall clock forward, and continues from its last time when that is set
// back.
func TestClockIsNeverSetBack(t *testing.T) {
	wall := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c := newClock(func() time.Time { return wall })
	var given []time.Time
	for _, jump := range []time.Duration{0, 0, time.Second, -time.Nanosecond, 24 * time.Hour, -24 * time.Hour, -time.Hour, 26 * time.Hour} {
		wall = wall.Add(jump)
		given = append(given, c.now())
	}
	for i, at := range given[1:] {
		if !at.After(given[i]) {
			t.Errorf("%s was followed by %s", given[i], at)
		}
	}
	if last := given[len(given)-1]; !last.Equal(wall) {
		t.Errorf("%s, with the wall clock at %s", last, wall)
	}
}

// Idleness depends on the broker's clock alone, which may be set, too. After it is set back, a
// session is idle after the usual time; sessions do not wait for a day.
func TestIdlenessFollowsTheBroker(t *testing.T) {
	noon, cfg := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Default()
	x := newIndex(10)
	s := x.session(store.SessionKey{AgentID: "a", SessionID: "s"}, &stream.Message{Sequence: 1, Received: noon})
	x.newest = noon
	for _, step := range []struct {
		what  string
		asked time.Duration // since noon
		due   bool
	}{
		{"at once", 0, false},
		{"almost idle", cfg.Idle, false}, // not idle yet: the clock subtracts a margin
		{"set back by a day", -24 * time.Hour, false},
		{"almost idle since", -24*time.Hour + cfg.Idle - time.Second, false},
		{"idle since", -24*time.Hour + cfg.Idle, true},
	} {
		x.asked = noon.Add(step.asked)
		if due := s.due(&cfg, nil, x.clock(), 0); (due != "") != step.due {
			t.Errorf("%s: due %q", step.what, due)
		}
	}
}
