package exporter

import (
	"sync"
	"time"
)

// clock returns the times that the exporter writes. It follows this machine's wall clock, but
// never goes back when that is set back. So nothing is dated before its cause: a bundle before
// its key, a row before the row that it replaces.
type clock struct {
	wall func() time.Time

	mu    sync.Mutex
	last  time.Time // the time returned last
	since time.Time // when it was returned, by the monotonic clock
}

func newClock(wall func() time.Time) *clock { return &clock{wall: wall} }

// now returns a time that is later than every time returned before.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, since := c.wall().Round(0), time.Now()
	if !c.last.IsZero() {
		if goesOn := c.last.Add(max(since.Sub(c.since), 1)); now.Before(goesOn) {
			now = goesOn
		}
	}
	c.last, c.since = now, since
	return now
}
