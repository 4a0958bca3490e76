// Package bubble runs tests on a clock of their own, as testing/synctest does.
//
// It owns the way around a fault of the race detector: where goroutines of a bubble run on
// two processors, its runtime ends the whole test process now and then ("ThreadSanitizer:
// CHECK failed: tsan_rtl.cpp"). It is Go's issue 78156, open in Go 1.26.8. Twenty lines of
// timers in bubbles, with nothing of ours, fail within seconds on two processors and never
// on one. So a bubble runs on one. The detector still finds races there: it looks at what
// synchronisation orders, not at what runs at the same moment.
package bubble

import (
	"runtime"
	"testing"
	"testing/synctest"
)

// Test is synctest.Test on one processor. Tests in bubbles are not to run in parallel with
// others.
func Test(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, f)
}
