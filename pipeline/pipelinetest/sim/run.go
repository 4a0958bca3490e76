package sim

import (
	"flag"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest/bubble"
)

var (
	oneSeed = flag.Uint64("seed", 0, "the one seed to simulate, with its history; 0 for -seeds of them")
	seeds   = flag.Int("seeds", 0, "how many seeds to simulate; 0 for a quick selection")
)

// mostFailures limits the failing seeds of a test: each prints its history.
const mostFailures = 3

// Run simulates seed after seed, usual of them unless the command line says otherwise, each in
// its own bubble (testing/synctest). They do not run in parallel, because a seed must behave the
// same when it runs alone.
func Run(t *testing.T, usual int, simulate func(t *testing.T, w *World)) {
	first, last := uint64(1), uint64(usual) // a count
	switch {
	case *oneSeed > 0:
		first, last = *oneSeed, *oneSeed
	case *seeds > 0:
		last = uint64(*seeds) // a count
	}
	for seed, failures := first, 0; seed <= last && failures < mostFailures; seed++ {
		if !t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { one(t, seed, simulate) }) {
			failures++
		}
	}
}

// today is the time at which simulations begin.
var today = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// one simulates one seed.
func one(t *testing.T, seed uint64, simulate func(t *testing.T, w *World)) {
	var w *World
	defer func() {
		if w.networked {
			emptyPools()
		}
	}()
	bubble.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(today)) // a bubble begins in the year 2000
		w = newWorld(seed)
		simulate(t, w)
		w.report(t)
		w.others.Wait()
	})
}

// emptyPools drops the timers that the broker's client library keeps in a sync.Pool. Timers that
// were created in a bubble must not be used outside it.
func emptyPools() {
	runtime.GC()
	runtime.GC() // the first one spares some
}

// report fails the test if an invariant did not hold, with the history and the command that
// repeats it.
func (w *World) report(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	wrong := w.wrong
	w.mu.Unlock()
	if len(wrong) == 0 && !t.Failed() {
		if *oneSeed > 0 {
			t.Logf("history:\n%s", w.History())
		}
		return
	}
	for _, text := range wrong {
		t.Error(text)
	}
	name, _, _ := strings.Cut(t.Name(), "/")
	t.Errorf("history:\n%srepeat with: go test -run '^%s$' -seed %d, in this directory", w.History(), name, w.seed)
}
