package exporter_test

import (
	"flag"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/exporter"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
)

var rows = flag.Int("rows", 2000, "how long TestLongSession's session is")

// sealingHeap is the most heap, garbage included, of a process that seals and is the
// broker, too: a group in memory several times over, and 200 bytes for each receipt of
// a session that all became due at once.
const sealingHeap = 448 << 20

// A session of any length is sealed part by part in memory that it has no say in. The
// verifier is done before the exporter starts: all parts are due at once.
func TestLongSession(t *testing.T) {
	s := newSite(t)
	s.Register(t, pipelinetest.Card("ac", "a"))
	part := max(*rows/100, 500)
	s.publishLong(t, *rows)
	debug.FreeOSMemory()
	peak := watchHeap(t)
	began := time.Now()
	stage := s.export(t, func(cfg *exporter.Config) { cfg.RotateRows = part })
	parts := (*rows + part - 1) / part
	for n := range parts {
		s.awaitBundles(t, n+1) // each for as long as patience lasts
	}
	took := time.Since(began)
	stage.Stop(t)
	heap := peak()
	t.Logf("%d rows in %d parts, %.0f rows/s, at most %d MiB of heap", *rows, parts, float64(*rows)/took.Seconds(), heap>>20)
	if bound := uint64(sealingHeap + 200**rows); heap > bound {
		t.Errorf("%d MiB of heap, want at most %d", heap>>20, bound>>20)
	}
	s.checkParts(t, parts)
}

// publishLong publishes one session and waits until it is judged.
func (s *site) publishLong(t *testing.T, n int) {
	t.Helper()
	judge := s.judge(t)
	for first := 0; first < n; first += 10_000 {
		next := min(first+10_000, n)
		s.Publish(t, sessionRows("s", first, next, n)...)
		pipelinetest.Await(t, "all traces judged", func() bool {
			progress, err := s.Client.ConsumerProgress(t.Context(), stream.Traces, stream.VerifierConsumer)
			return err == nil && progress.AckFloor == uint64(next)
		})
	}
	judge.Stop(t)
}

// checkParts demands that the bundles are one chain that holds every row once.
func (s *site) checkParts(t *testing.T, parts int) {
	t.Helper()
	bundles := s.bundles(t, "a", "s")
	if len(bundles) != parts {
		t.Fatalf("%d bundles, want %d", len(bundles), parts)
	}
	previous, seen := "", map[string]bool{}
	for i, b := range bundles {
		report, sealed := s.check(t, b)
		o := report.Opening
		if o.Part != int64(i+1) || o.LastPart != (i == parts-1) || o.PreviousBundleHash != previous {
			t.Errorf("part %d opens with %+v", i+1, o)
		}
		previous = report.SHA256
		for _, id := range traceIDs(t, sealed) {
			if seen[id] {
				t.Errorf("%s is sealed twice", id)
			}
			seen[id] = true
		}
	}
	if len(seen) != *rows {
		t.Errorf("%d traces are sealed, want %d", len(seen), *rows)
	}
}

// watchHeap looks at the heap until peak is called, which returns the largest seen.
func watchHeap(t *testing.T) (peak func() uint64) {
	t.Helper()
	ended, largest := make(chan struct{}), make(chan uint64)
	go func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		most := uint64(0)
		for {
			metrics.Read(sample)
			most = max(most, sample[0].Value.Uint64())
			select {
			case <-tick.C:
			case <-ended:
				largest <- most
				return
			}
		}
	}()
	return func() uint64 {
		close(ended)
		return <-largest
	}
}
