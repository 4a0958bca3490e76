package store

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/plumbline/plumbline/engine"
	"github.com/plumbline/plumbline/schema"
)

// Rows whose writes fail are not taken for stored: they are inserted until they are, also
// where the server says that it has them.
func TestRowsThatWereNotWrittenAreInsertedAgain(t *testing.T) {
	e, err := engine.Start(t.Context(), engine.Config{DataDir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := Migrate(t.Context(), e.AdminDSN()); err != nil {
		t.Fatal(err)
	}
	s := openDSN(t, e.ServiceDSN())
	const rows = 20
	traces := make([]*schema.Trace, rows)
	for i := range traces {
		traces[i] = numbered(t, i)
	}
	b := batchOf(s, traces...)
	limit := unix.Rlimit{Cur: 1 << 10, Max: unix.RLIM_INFINITY} // of the size of a file, until the server is started again
	if err := unix.Prlimit(e.Pid(), unix.RLIMIT_FSIZE, &limit, nil); err != nil {
		t.Fatal(err)
	}
	outcome := s.InsertTraces(t.Context(), b)
	if outcome == nil {
		t.Fatal("rows of which nothing is written count as stored")
	}
	t.Log(outcome) // ErrUnwritten, or that the server was killed before it answered
	for end := time.Now().Add(time.Minute); outcome != nil && time.Now().Before(end); outcome = s.InsertTraces(t.Context(), b) {
		if Classify(outcome) != Retry {
			t.Fatal(outcome)
		}
	}
	if outcome != nil {
		t.Fatal(outcome)
	}
	if counts, err := s.Counts(t.Context()); err != nil || counts.Traces != rows || counts.Verdicts != rows {
		t.Errorf("%+v, error %v, want %d traces and verdicts", counts, err, rows)
	}
	if state := e.State(); state.Restarts == 0 {
		t.Error("the server was not started again")
	}
}

// After an attempt whose writes failed what the server shows does not count: it may be gone
// when it is started again.
func TestRowsAreSentAgainThoughTheyAreThere(t *testing.T) {
	s, _ := open(t)
	b := batchOf(s, numbered(t, 1))
	insert(t, s, b)
	b.traces.doubt, b.traces.done = true, false
	if rows, err := s.unstored(t.Context(), b.traces); err != nil || rows == nil || len(rows) > 0 {
		t.Fatalf("after a lost answer are sent: %v, %v, want none", rows, err)
	}
	b.traces.unwritten = true
	if rows, err := s.unstored(t.Context(), b.traces); rows != nil || err != nil {
		t.Errorf("after writes that failed are sent: %v, %v, want all", rows, err)
	}
}
