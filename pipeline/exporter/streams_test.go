package exporter_test

import (
	"slices"
	"testing"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
)

func (s *site) awaitRows(t testing.TB, n uint64) {
	t.Helper()
	pipelinetest.Await(t, "rows and receipts of all traces", func() bool {
		progress, err := s.Client.ConsumerProgress(t.Context(), stream.Traces, stream.VerifierConsumer)
		return err == nil && progress.Pending == 0 && s.Number(t, "SELECT uniqExact(trace_id) FROM traces") == n
	})
}

// holds requires the trace ids of a bundle.
func (s *site) holds(t testing.TB, b *store.Bundle, want ...string) {
	t.Helper()
	_, rows := s.check(t, *b)
	if got := traceIDs(t, rows); !slices.Equal(got, want) {
		t.Errorf("part %d holds %v, want %v", b.Part, got, want)
	}
}

func (s *site) awaitParts(t testing.TB, n int) []store.Bundle {
	t.Helper()
	pipelinetest.Await(t, "the parts", func() bool { return len(s.bundles(t, "a", "s")) == n })
	return s.bundles(t, "a", "s")
}

// A sealed session goes on in a new stream TRACES, whose sequences begin again at 1. Its earlier rows are
// in a bundle and are not foreign.
func TestSessionGoesOnInANewStream(t *testing.T) {
	s := newSite(t)
	s.Register(t, pipelinetest.Card("ac", "a"))
	s.judge(t)
	s.export(t, nil)
	s.Publish(t, trace("tr-1", "s", 1), trace("tr-2", "s", 2))
	s.requestEnd(t, "a", "s")
	s.awaitParts(t, 1)
	s.Recreate(t, stream.Traces)
	s.Publish(t, trace("tr-3", "s", 3), trace("tr-4", "s", 4), trace("tr-5", "s", 5), trace("tr-1", "s", 1)) // the file of part 1 shows that the last one is sealed
	s.awaitRows(t, 5)
	s.requestEnd(t, "a", "s")
	parts := s.awaitParts(t, 2)
	s.holds(t, &parts[0], "tr-1", "tr-2")
	s.holds(t, &parts[1], "tr-3", "tr-4", "tr-5")
	if parts[1].Part != 2 || parts[1].PreviousSHA256 != parts[0].SHA256.String() {
		t.Errorf("part %d continues %s, want 2 and %s", parts[1].Part, parts[1].PreviousSHA256, parts[0].SHA256)
	}
}

// A session is open when stream TRACES is replaced: what it has in the earlier stream is sealed first, although
// other traces have the same sequences now. A restarted exporter does not seal it again.
func TestOpenSessionGoesOnInANewStream(t *testing.T) {
	s := newSite(t)
	s.Register(t, pipelinetest.Card("ac", "a"))
	s.judge(t)
	stage := s.export(t, nil)
	s.Publish(t, trace("tr-1", "s", 1), trace("tr-2", "s", 2), trace("open", "open", 3)) // the other session keeps its receipts from being done
	s.awaitRows(t, 3)
	s.Recreate(t, stream.Traces)
	s.Publish(t, trace("tr-3", "s", 4), trace("tr-4", "s", 5), trace("tr-5", "s", 6))
	s.awaitRows(t, 6)
	s.requestEnd(t, "a", "s")
	parts := s.awaitParts(t, 2)
	s.holds(t, &parts[0], "tr-1", "tr-2")
	s.holds(t, &parts[1], "tr-3", "tr-4", "tr-5")
	if parts[0].LastPart || !parts[1].LastPart {
		t.Errorf("the parts are the last one: %v, %v", parts[0].LastPart, parts[1].LastPart)
	}
	stage.Stop(t)
	s.export(t, nil)
	s.Publish(t, trace("tr-6", "s", 7))
	s.awaitRows(t, 7)
	s.requestEnd(t, "a", "s")
	parts = s.awaitParts(t, 3)
	s.holds(t, &parts[2], "tr-6")
}

// An end that was requested in the earlier stream does not wait for its sequence in the new one.
func TestEndRequestedInAnEarlierStream(t *testing.T) {
	s := newSite(t)
	s.Register(t, pipelinetest.Card("ac", "a"))
	s.judge(t)
	s.Publish(t, trace("tr-1", "s", 1), trace("other-1", "other", 2), trace("other-2", "other", 3))
	s.awaitRows(t, 3)
	s.requestEnd(t, "a", "s")
	s.Recreate(t, stream.Traces)
	s.Publish(t, trace("tr-2", "s", 4))
	s.awaitRows(t, 4)
	s.export(t, nil)
	parts := s.awaitParts(t, 1)
	s.holds(t, &parts[0], "tr-1")
	if parts[0].LastPart {
		t.Error("the part counts as the last one, and the session goes on")
	}
	s.requestEnd(t, "a", "s")
	parts = s.awaitParts(t, 2)
	s.holds(t, &parts[1], "tr-2")
}

// All data of the broker is lost, and the session goes on. What was sealed before is in no later bundle. A row that
// never got a receipt, as its receipt is lost, too, is not sealed.
func TestSessionGoesOnAfterTheBrokersDataIsLost(t *testing.T) {
	s := newSite(t)
	s.Register(t, pipelinetest.Card("ac", "a"))
	judge, export := s.judge(t), s.export(t, nil)
	s.Publish(t, trace("tr-1", "s", 1), trace("tr-2", "s", 2))
	s.requestEnd(t, "a", "s")
	s.awaitParts(t, 1)
	s.Publish(t, trace("lost", "s", 3))
	s.awaitRows(t, 3)
	export.Stop(t)
	judge.Stop(t)
	s.Recreate(t)
	s.Register(t, pipelinetest.Card("ac", "a"))
	s.judge(t)
	s.export(t, nil)
	s.Publish(t, trace("tr-3", "s", 4), trace("tr-4", "s", 5), trace("tr-5", "s", 6))
	s.awaitRows(t, 6)
	s.requestEnd(t, "a", "s")
	parts := s.awaitParts(t, 2)
	slices.SortFunc(parts, func(a, b store.Bundle) int { return int(a.TraceCount) - int(b.TraceCount) }) // both are part 1
	s.holds(t, &parts[0], "tr-1", "tr-2")
	s.holds(t, &parts[1], "tr-3", "tr-4", "tr-5")
}
