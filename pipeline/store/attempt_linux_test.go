package store

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/plumbline/plumbline/engine"
	"github.com/plumbline/plumbline/pipeline/database"
)

// Rows whose writes fail do not count as stored, although the server returns them. This holds for
// a service that sent them, and for one that looks them up because it was killed before it had an
// answer. They are inserted again until they are on the disk.
func TestRowsThatWereNotWrittenAreInsertedAgain(t *testing.T) {
	e, err := engine.Start(t.Context(), engine.Config{DataDir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := database.Migrate(t.Context(), e.AdminDSN()); err != nil {
		t.Fatal(err)
	}
	s := openDSN(t, e.ServiceDSN())
	const rows = 20
	for round, killed := range []bool{false, true} {
		b, redelivered := s.NewTraceBatch(), s.NewTraceBatch()
		for i := range rows {
			id := fmt.Sprintf("tr-%d", rows*round+i)
			trace := simple(t, id, "agent", "s", noise(40_000))
			m := meta(trace, uint64(rows*round+i+1))
			b.Add(trace, m, cleanVerdict(trace))
			m.Redelivered = true
			redelivered.Add(trace, m, cleanVerdict(trace))
		}
		limit := unix.Rlimit{Cur: 64 << 10, Max: unix.RLIM_INFINITY} // of a file's size, until the server restarts
		if err := unix.Prlimit(e.Pid(), unix.RLIMIT_FSIZE, &limit, nil); err != nil {
			t.Fatal(err)
		}
		outcome := s.InsertTraces(t.Context(), b)
		if outcome == nil {
			t.Fatal("rows that were not written count as stored")
		}
		t.Log(outcome) // ErrUnwritten, or the error that the server was killed before it answered
		if killed {
			b = redelivered
		}
		outcome = s.InsertTraces(t.Context(), b)
		for end := time.Now().Add(time.Minute); outcome != nil && time.Now().Before(end); outcome = s.InsertTraces(t.Context(), b) {
			if database.Classify(outcome) != database.Retry {
				t.Fatal(outcome)
			}
		}
		if outcome != nil {
			t.Fatal(outcome)
		}
		end := time.Now().Add(time.Minute)
		for state := e.State(); state.Restarts <= round || !state.Ready; state = e.State() {
			if time.Now().After(end) {
				t.Fatal("the server was not restarted")
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	if counts, err := s.Counts(t.Context()); err != nil || counts.Traces != 2*rows || counts.Verdicts != 2*rows {
		t.Errorf("%+v, error %v, want %d traces and verdicts", counts, err, 2*rows)
	}
}

// After an attempt whose writes failed, rows that the server shows do not count: they may be gone
// after a restart.
func TestVisibleRowsAreSentAgainAfterFailedWrites(t *testing.T) {
	s, _ := open(t)
	b := batchOf(s, numbered(t, 1))
	insert(t, s, b)
	b.traces.doubt, b.traces.done = true, false
	if rows, err := s.unstored(t.Context(), b.traces); err != nil || rows == nil || len(rows) > 0 {
		t.Fatalf("after a lost answer rows %v are sent (%v), want none", rows, err)
	}
	b.traces.unwritten = true
	if rows, err := s.unstored(t.Context(), b.traces); rows != nil || err != nil {
		t.Errorf("after failed writes rows %v are sent (%v), want all", rows, err)
	}
}

// noise returns text that no codec can compress.
func noise(n int) string {
	b := make([]byte, n/2)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return hex.EncodeToString(b)
}
