// Package bubble runs tests on a simulated clock, as testing/synctest does.
//
// It owns the workaround for a bug of the race detector. If goroutines of a bubble run on two
// processors, its runtime sometimes ends the whole test process ("ThreadSanitizer: CHECK failed:
// tsan_rtl.cpp"). This is Go's issue 78156, open in Go 1.26.8. Twenty lines of timers in bubbles,
// without any code of ours, fail within seconds on two processors and never on one. So a bubble
// runs on one processor. The detector still finds races there: it examines what synchronisation
// orders, not what runs at the same moment.
package bubble

import (
	"runtime"
	"testing"
	"testing/synctest"
)

// Test is synctest.Test on one processor. Tests in bubbles must not run in parallel with others.
func Test(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, f)
}
