package exporter

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/pipeline/keystore"
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
	awaitRow(t, rig, "before", 2)
}

// awaitRow waits until the newest row of a session has this many bundles.
func awaitRow(t *testing.T, rig *pipelinetest.Rig, session string, bundles uint64) {
	t.Helper()
	pipelinetest.Await(t, "the newest row of a session", func() bool {
		for s, err := range rig.Store.RecordedSessions(t.Context()) {
			if err == nil && s.SessionID == session {
				return uint64(s.Bundles) == bundles
			}
		}
		return false
	})
}

// A clock that was ahead and is right again dates bundles right: they stay valid once their key is replaced.
// The rows of a session that was sealed meanwhile keep their order, also after a restart.
func TestClockThatWasAhead(t *testing.T) {
	rig, cfg := site(t)
	var ahead atomic.Int64
	wall := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	start := func() *pipelinetest.Stage {
		return pipelinetest.Go(t, func(ctx context.Context) error { return exportingBy(ctx, t, wall, rig, cfg, &pipelinetest.Fault{}) })
	}
	stage := start()
	goOn := func(n int) {
		t.Helper()
		rig.Publish(t, numbered(fmt.Sprint("tr-", 3+n), "ahead", 3+n, ""))
		requestEnd(t, rig, "ahead")
		pipelinetest.Await(t, "the next part", func() bool { return parts(t, rig, "ahead") == n })
		awaitRow(t, rig, "ahead", uint64(n))
	}
	ahead.Store(int64(24 * time.Hour))
	publishGaps(t, rig, "ahead")
	pipelinetest.Await(t, "session ahead", func() bool { return sealedRecord(t, rig, "ahead") })
	ahead.Store(0)
	publishGaps(t, rig, "after")
	pipelinetest.Await(t, "session after", func() bool { return sealedRecord(t, rig, "after") })
	goOn(2)
	stage.Stop(t)
	stage = start()
	goOn(3)
	stage.Stop(t)

	slot := keystore.Slot{Path: cfg.keyFile(), Purpose: keyring.Session}
	first, err := slot.Load(t.Context(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	rotated, err := slot.Rotate(t.Context(), keystore.Period{From: time.Now().Add(time.Second)}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	bundles, err := rig.Store.Bundles(t.Context(), "a", "after")
	if err != nil || len(bundles) != 1 {
		t.Fatal(err, len(bundles))
	}
	data, err := os.ReadFile(filepath.Join(cfg.bundleDir(), bundles[0].Path))
	if err != nil {
		t.Fatal(err)
	}
	report, err := aivs.Verify(bytes.NewReader(data), aivs.Options{Signer: func(key ed25519.PublicKey, at time.Time) error {
		return rotated.Ring.Accept([]ed25519.PublicKey{first.Entry.Public()}, key, keyring.Session, at)
	}})
	if err != nil || !report.Intact {
		t.Errorf("the bundle is dated %s: %v, error %v", bundles[0].ExportedAt, report, err)
	}
}

// A clock that was ahead of the end of the key stops sealing only for as long.
func TestClockThatWasAheadOfTheKeysEnd(t *testing.T) {
	rig, cfg := site(t)
	slot := keystore.Slot{Path: cfg.keyFile(), Purpose: keyring.Session}
	if err := os.MkdirAll(filepath.Dir(slot.Path), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := slot.New(t.Context(), keystore.Period{From: time.Now().Add(-time.Minute), Until: time.Now().Add(12 * time.Hour)}, time.Now()); err != nil {
		t.Fatal(err)
	}
	var ahead, asked atomic.Int64
	wall := func() time.Time {
		if ahead.Load() > 0 {
			asked.Add(1)
		}
		return time.Now().Add(time.Duration(ahead.Load()))
	}
	pipelinetest.Go(t, func(ctx context.Context) error { return exportingBy(ctx, t, wall, rig, cfg, &pipelinetest.Fault{}) })
	publishGaps(t, rig, "before")
	pipelinetest.Await(t, "session before", func() bool { return sealedRecord(t, rig, "before") })
	ahead.Store(int64(24 * time.Hour))
	pipelinetest.Await(t, "a look at the wrong clock", func() bool { return asked.Load() > 0 })
	ahead.Store(0)
	publishGaps(t, rig, "after")
	pipelinetest.Await(t, "session after", func() bool { return sealedRecord(t, rig, "after") })
}

// A look does not hold the clock ahead. A correction follows the wall clock back if that is far behind.
func TestClockIsCorrected(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		behind    time.Duration
		corrected bool
	}{{4 * time.Second, false}, {6 * time.Second, true}, {24 * time.Hour, true}} {
		wall := noon
		clock := newClock(func() time.Time { return wall })
		clock.now()
		wall = noon.Add(time.Hour)
		if at := clock.look(); !at.Equal(wall) {
			t.Errorf("the time is %s, want %s", at, wall)
		}
		wall = noon.Add(-c.behind)
		if at := clock.look(); at.Before(noon) || at.After(noon.Add(time.Minute)) {
			t.Errorf("%s before noon the time is %s", c.behind, at)
		}
		corrected := clock.correct()
		if at := clock.now(); corrected != c.corrected || at.Equal(wall) != c.corrected {
			t.Errorf("%s behind: corrected %v, to %s", c.behind, corrected, at)
		}
	}
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
	s := x.session(store.SessionKey{AgentID: "a", SessionID: "s"}, 0, &stream.Message{Sequence: 1, Received: noon})
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
