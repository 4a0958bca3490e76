package drift

import (
	"context"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

const (
	// watchEvery is how often the broker is asked how far each partition is.
	watchEvery = 500 * time.Millisecond
	// watchSlack is what a commit may take, and the broker until it counts the
	// acknowledgements.
	watchSlack = 2 * time.Second
)

// Progress is who knows how far the partitions are (stream.Client).
type Progress interface {
	StreamState(ctx context.Context, name string) (stream.State, error)
	ConsumerProgress(ctx context.Context, stream, name string) (stream.Progress, error)
}

// stuckWatch finds partitions that have traces and acknowledge none. It believes the broker
// alone: whatever the stage waits for shows so.
type stuckWatch struct {
	broker    Progress
	most      int // looks that may find the same
	positions [subject.Partitions]position
	done      uint64 // everything up to this sequence was acknowledged
}

// position is how far a partition was acknowledged. Time is counted in looks, so that a
// process or a machine that was suspended is not called stuck when it goes on.
type position struct {
	floor uint64
	looks int // that found the same, and traces that wait
}

// watchStuck reports the stage as down while a partition acknowledges nothing for longer
// than a trace may wait, until ctx ends.
func (s *stage) watchStuck(ctx context.Context, broker Progress) error {
	limit := s.cfg.Lateness + idleSlack + watchSlack
	w := stuckWatch{broker: broker, most: int(limit / watchEvery)}
	health := s.env.Component(s.env.Name)
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		stuck, err := w.look(ctx)
		switch {
		case err != nil: // the broker's own component says so
			w = stuckWatch{broker: broker, most: w.most}
		case len(stuck) > 0:
			health.Down(fmt.Sprintf("traces wait, and for %s none of partitions %v was acknowledged", limit, stuck))
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

// look asks how far all partitions are and returns those that are stuck. While nothing
// comes and nothing waits it asks once, for the stream.
func (w *stuckWatch) look(ctx context.Context) (stuck []int, err error) {
	traces, err := w.broker.StreamState(ctx, stream.Traces)
	if err != nil || traces.LastSequence == w.done {
		return nil, err
	}
	idle := true
	for i := range w.positions {
		found, err := w.broker.ConsumerProgress(ctx, stream.Traces, stream.DriftConsumer(i))
		if err != nil {
			return nil, err
		}
		p := &w.positions[i]
		switch waits := found.Pending > 0 || found.Unacked > 0; {
		case !waits:
			*p = position{floor: found.AckFloor}
		case found.AckFloor != p.floor:
			*p, idle = position{floor: found.AckFloor}, false
		default:
			p.looks, idle = p.looks+1, false
		}
		if p.looks > w.most {
			stuck = append(stuck, i)
		}
	}
	if idle {
		w.done = traces.LastSequence
	}
	return stuck, nil
}
