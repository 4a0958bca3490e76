package exporter_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// Sizes of TestLongSession's session.
var (
	rows     = flag.Int("rows", 1000, "rows of the session")
	partRows = flag.Int("part", 250, "most rows of a bundle")
	spacing  = flag.Duration("spacing", time.Second, "time from one row to the next")
)

// sealingMemory is the largest resident memory of an exporter process that seals a session of any
// length: a part several times, and the kept receipts.
const sealingMemory = 384 << 20

// A session of any length is sealed part by part. The verifier has finished before the exporter
// starts, in a process of its own, so all parts are due at once.
func TestLongSession(t *testing.T) {
	s := newSite(t)
	s.Register(t, pipelinetest.Card("ac", "a"))
	part := *partRows
	s.publishLong(t, *rows)
	began := time.Now()
	process := s.startProcess(t, part)
	parts := (*rows + part - 1) / part
	for n := range parts {
		s.awaitBundles(t, n+1) // each waits with its own time limit
	}
	took := time.Since(began)
	peak := peakMemory(t, process)
	t.Logf("%d rows in %d parts, %.0f rows/s, at most %d MiB resident", *rows, parts, float64(*rows)/took.Seconds(), peak>>20)
	if peak > sealingMemory {
		t.Errorf("%d MiB resident, want at most %d", peak>>20, sealingMemory>>20)
	}
	s.checkParts(t, parts)
}

// startProcess starts an exporter whose bundles have at most rows rows.
func (s *site) startProcess(t *testing.T, rows int) *os.Process {
	t.Helper()
	process := exec.Command(os.Args[0], "-test.run", "^TestInjectedProcess$", "-test.timeout", "0")
	process.Env = append(s.processEnv(), fmt.Sprintf("%s=%d", injectRows, rows))
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = process.Wait() // the error is that it was killed
	})
	return process.Process
}

// peakMemory returns the peak resident memory of a process in bytes.
func peakMemory(t *testing.T, process *os.Process) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process.Pid))
	if err != nil {
		t.Skipf("the resident memory cannot be read here: %v", err)
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	var kilobytes int
	if _, err := fmt.Sscan(after, &kilobytes); err != nil {
		t.Fatal(err)
	}
	return kilobytes << 10
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

// checkParts requires that the bundles are one chain with every row once.
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
