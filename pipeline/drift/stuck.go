package drift

import (
	"context"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/pipeline/stream"
)

const (
	// watchEvery is how often the progress is queried.
	watchEvery = 500 * time.Millisecond
	// watchSlack is the time that a commit may take, until the position is recorded.
	watchSlack = 2 * time.Second
)

// Broker says how far stream TRACES is (stream.Client).
type Broker interface {
	StreamState(ctx context.Context, stream string) (stream.State, error)
}

// stuckWatch finds out whether traces wait and the recorded position of this process stays, which shows
// a stall for any cause. Time is counted in looks, so a process or a machine that was suspended is not
// reported as stuck when it continues.
type stuckWatch struct {
	most     int    // how many looks may find the same position
	position uint64 // of the last look
	looks    int    // looks that found it while traces wait
}

// watchStuck reports the stage as down while it finishes nothing for longer than a trace may wait. It
// returns when the term ends.
func (s *stage) watchStuck(ctx context.Context, broker Broker) error {
	limit := s.cfg.Lateness + max(s.cfg.CheckpointAge, clusterSlack) + watchSlack
	w := stuckWatch{most: int(limit / watchEvery)}
	health := s.env.Component(s.env.Name)
	defer health.Up() // its partitions are another process's, or the next term looks again
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		traces, err := broker.StreamState(ctx, stream.Traces)
		switch {
		case err != nil: // the broker's own component reports it
			w = stuckWatch{most: w.most}
		case w.look(traces, s.source.Position()):
			health.Down(fmt.Sprintf("traces wait, and this process has finished none of its partitions for %s", limit))
		default:
			health.Up()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look reports whether the stage is stuck.
func (w *stuckWatch) look(traces stream.State, position uint64) bool {
	if traces.Behind(position) == 0 || position != w.position {
		w.position, w.looks = position, 0
		return false
	}
	w.looks++
	return w.looks > w.most
}
