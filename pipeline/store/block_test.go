package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/pipeline/database"
	"github.com/plumbline/plumbline/schema"
)

// long returns traces of an agent, of 30 KB each, so a batch of them is sent in many pieces.
func long(t *testing.T, agent string, n int) (traces []*schema.Trace) {
	for i := range n {
		reasoning := strings.Repeat(fmt.Sprintf("reason %d, ", i), 3000)
		traces = append(traces, simple(t, fmt.Sprintf("tr-%d", i), agent, "s-1", reasoning))
	}
	return traces
}

// A block arrives as it was sent, compressed or not.
func TestBlocksArrive(t *testing.T) {
	_, dsn := open(t)
	separator := "?"
	if strings.Contains(dsn, "?") {
		separator = "&"
	}
	for _, compression := range []string{"none", "lz4", "lz4hc", "zstd"} {
		s := openDSN(t, dsn+separator+"compress="+compression)
		traces := long(t, compression, 20)
		insert(t, s, batchOf(s, traces...))
		stored := sessionOf(t, s, traces[0])
		if len(stored) != len(traces) {
			t.Fatalf("%s: %d traces are stored, want %d", compression, len(stored), len(traces))
		}
		for i, row := range stored {
			if want := traces[i]; row.TraceID != want.TraceID || !bytes.Equal(row.Raw, want.Raw) {
				t.Errorf("%s: row %d is trace %s with %d bytes, want %s with %d", compression, i, row.TraceID, len(row.Raw), want.TraceID, len(want.Raw))
			}
		}
	}
}

// An attempt that ends early leaves no connection in the middle of a block: the next one succeeds.
func TestBlockAfterOneThatWasCancelled(t *testing.T) {
	s, _ := open(t)
	traces := long(t, "agent", 20)
	insert(t, s, batchOf(s, traces[:1]...)) // connects
	b := batchOf(s, traces...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.InsertTraces(ctx, b); !errors.Is(err, context.Canceled) {
		t.Fatalf("insert with a cancelled context: %v", err)
	}
	insert(t, s, b)
	if c := counts(t, s); c.Traces != uint64(len(traces)) || c.Verdicts != uint64(len(traces)) {
		t.Errorf("%d traces and %d verdicts are stored, want %d", c.Traces, c.Verdicts, len(traces))
	}
}

// numbers is a column of UInt64. It fails after the first of its rows if broken is true.
type numbers struct {
	rows   int
	broken bool
}

func (n numbers) Rows() int { return n.rows }

var errBroken = errors.New("broken")

func (n numbers) Encode(w *database.BlockWriter) error {
	for i := range n.rows {
		w.PutUInt64(uint64(i))
		if err := w.Spill(); err != nil {
			return err
		}
		if n.broken && i == n.rows/2 {
			return errBroken
		}
	}
	return nil
}

// Nothing of a block is stored whose sending failed half-way, and the next block is.
func TestBlockThatFailsHalfWay(t *testing.T) {
	s, _ := open(t)
	exec(t, s, "CREATE TABLE numbers (n UInt64) ENGINE = MergeTree ORDER BY n")
	for attempt, c := range []struct {
		values  numbers
		kind    string
		want    error
		current uint64
	}{
		{numbers{rows: 200_000, broken: true}, "UInt64", errBroken, 0},
		{numbers{rows: 200_000}, "UInt32", database.ErrDeployment, 0},
		{numbers{rows: 200_000}, "UInt64", nil, 200_000},
		{numbers{rows: 1}, "UInt64", nil, 200_001},
	} {
		columns := []database.Column{{Name: "n", Type: c.kind, Values: c.values}}
		if err := s.db.InsertBlock(t.Context(), "numbers", "", "INSERT INTO numbers (n)", columns); !errors.Is(err, c.want) {
			t.Errorf("attempt %d: %v, want %v", attempt, err, c.want)
		}
		var rows uint64
		if err := s.db.QueryRow(t.Context(), "SELECT count() FROM numbers").Scan(&rows); err != nil || rows != c.current {
			t.Errorf("after attempt %d there are %d rows, want %d (%v)", attempt, rows, c.current, err)
		}
	}
}
