package drift

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// parcels is a finite source: each fetch returns the next slice.
type parcels struct {
	next      [][]stream.Message
	delivered uint64
}

func (s *parcels) Fetch(_ context.Context, into []stream.Message, _, _ int, _ time.Duration) ([]stream.Message, error) {
	if len(s.next) == 0 {
		return into, nil
	}
	for _, m := range s.next[0] {
		s.delivered++
		m.Delivery = s.delivered
		into = append(into, m)
	}
	s.next = s.next[1:]
	return into, nil
}

func (s *parcels) Progress(context.Context) (stream.Progress, error) {
	return stream.Progress{Deliveries: s.delivered}, nil
}

func (s *parcels) StreamCreated() time.Time { return noon }
func (s *parcels) Close()                   {}

// noStates has no state of any series.
type noStates struct{ Rows }

func (noStates) DriftStates(context.Context, time.Time, int, []store.SeriesKey) ([]store.DriftState, error) {
	return nil, nil
}

// A quiet partition's traces become due once it was quiet for as long as they may wait, whatever
// this machine's wall clock says: not earlier, or a trace that arrives within the lateness would
// be late, and not a day later.
func TestWallClockJumps(t *testing.T) {
	for _, jump := range []time.Duration{24 * time.Hour, -24 * time.Hour, -3 * time.Second} {
		t.Run(jump.String(), func(t *testing.T) {
			cfg := Default()
			env := pipelinetest.Env(t, "drift")
			s := &stage{
				cfg: &cfg, env: env, registry: noCards{}, pins: Pins{}, rows: noStates{}, metrics: newMetrics(env.Metrics),
				now: func() time.Time { return time.Now().Round(0).Add(jump) },
			}
			p := newPartition(s, 0)
			p.quiet = time.Now()
			arrival := time.Now().Round(0)
			trace := func(n int, at time.Time) stream.Message {
				return message(uint64(n), "a", arrival, usual(fmt.Sprintf("tr-%d", n), "a", at))
			}
			source := &parcels{next: [][]stream.Message{{trace(1, arrival)}, nil, {trace(2, arrival.Add(-time.Second))}, nil}}
			for range 4 {
				if err := p.next(t.Context(), source); err != nil {
					t.Fatal(err)
				}
			}
			if n := p.fold.queue.waiting; n != 2 {
				t.Errorf("%d traces wait, want both", n)
			}
			p.quiet = p.quiet.Add(-cfg.Lateness - idleSlack)
			if err := p.next(t.Context(), source); err != nil {
				t.Fatal(err)
			}
			var y batch
			if err := p.take(&y); err != nil {
				t.Fatal(err)
			}
			if len(y.points) != 2 || y.points[0].TraceID != "tr-2" || y.points[0].Status != "baseline" || y.points[1].Status != "baseline" {
				t.Errorf("points %+v", y.points)
			}
		})
	}
}
