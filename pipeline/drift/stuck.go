package drift

import (
	"context"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/walk"
)

const (
	// watchEvery is how often the progress of each partition is queried.
	watchEvery = 500 * time.Millisecond
	// watchSlack is the time that a commit may take, until the broker knows the position.
	watchSlack = 2 * time.Second
)

// stuckWatch finds partitions that have traces and ack none. It uses only the broker's view,
// which shows a stall for any cause.
type stuckWatch struct {
	broker    walk.Broker
	most      int // how many looks may find the same progress
	positions [subject.Partitions]position
	done      uint64 // everything up to this sequence was acked
}

// position is the progress of a partition. Time is counted in looks, so a process or a machine
// that was suspended is not reported as stuck when it continues.
type position struct {
	floor uint64
	looks int // looks that found the same progress while traces wait
}

// watchStuck reports the stage as down while a partition acks nothing for longer than a trace may
// wait. It returns when ctx ends.
func (s *stage) watchStuck(ctx context.Context, broker walk.Broker) error {
	limit := s.cfg.Lateness + max(s.cfg.CheckpointAge, clusterSlack) + watchSlack
	w := stuckWatch{broker: broker, most: int(limit / watchEvery)}
	health := s.env.Component(s.env.Name)
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		stuck, err := w.look(ctx)
		switch {
		case err != nil: // the broker's own component reports it
			w = stuckWatch{broker: broker, most: w.most}
		case len(stuck) > 0:
			health.Down(fmt.Sprintf("traces wait, and partitions %[2]v have acknowledged none for %[1]s", limit, stuck))
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

// look queries the progress of all partitions and returns those that are stuck. Once all is acked
// it makes only one request, for the stream, until new traces arrive.
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
