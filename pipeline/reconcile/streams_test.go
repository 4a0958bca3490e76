package reconcile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/reconcile"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// Session x goes on in a new stream TRACES. Nothing differs. Then rows are added to and removed from what
// it has of the earlier stream, which the exporter does not compare with receipts again.
func TestRowsOfAnEarlierStreamAreInBundles(t *testing.T) {
	s := newSite(t)
	s.Register(t, pipelinetest.Card("ac", "a"))
	s.Publish(t, trace("x-1", "x", 1), trace("x-2", "x", 2), trace("y-1", "y", 3))
	s.end(t, "x", 1)
	s.end(t, "y", 2)
	s.Publish(t, trace("x-3", "x", 4))
	s.rest(t)
	s.Recreate(t, stream.Traces)
	s.run(t)
	s.Publish(t, trace("x-4", "x", 5))
	s.end(t, "x", 4) // x-3 and x-4 are in parts of their own
	s.rest(t)
	state, err := s.Client.StreamState(t.Context(), stream.Traces)
	if err != nil {
		t.Fatal(err)
	}
	s.now = state.Now.Add(2 * time.Hour)
	if summary, found := s.compare(t); len(found) != 0 || summary.Counts.Sealed != 5 {
		t.Fatalf("%d traces are sealed, want 5; reported:\n%s", summary.Counts.Sealed, lines(found))
	}
	s.exec(t, copyRow, "'x-added'", "SHA256(raw || ' ')", "received_at", "stream_sequence", "raw || ' '", "x-1")
	s.exec(t, strings.Replace(copyRow, "card_id, session_id, session_end, action_type, action_name, action_category, %s FROM", "card_id, 'z', session_end, action_type, action_name, action_category, %s FROM", 1),
		"'z-added'", "SHA256(raw || '  ')", "received_at", "stream_sequence", "raw || '  '", "x-1")
	if n := s.Number(t, "SELECT count() FROM traces FINAL"); n != 7 {
		t.Fatalf("%d rows, want 7", n)
	}
	s.exec(t, "ALTER TABLE traces DELETE WHERE trace_id IN ('x-3', 'y-1')")
	_, found := s.compare(t)
	var reported []string
	for _, d := range found {
		if d.Kind == reconcile.TraceUnsealed || d.Kind == reconcile.SealedRowMissing {
			reported = append(reported, fmt.Sprint(d.Kind, " ", d.SessionID, " ", d.TraceID))
		}
	}
	slices.Sort(reported)
	if got, want := strings.Join(reported, "\n"), "sealed_row_missing x x-3\nsealed_row_missing y y-1\ntrace_unsealed x x-added\ntrace_unsealed z z-added"; got != want {
		t.Errorf("reported\n%s\nwant\n%s\nall of it:\n%s", got, want, lines(found))
	}
}
