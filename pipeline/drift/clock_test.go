package drift

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// parcels is a finite source, of a term that owns everything: each fetch returns the next slice.
type parcels struct {
	next     [][]stream.Message
	alone    bool // one server dates the messages
	sequence uint64
	received time.Time
}

func (s *parcels) Fetch(_ context.Context, into []stream.Message, _, _ int, _ time.Duration) ([]stream.Message, error) {
	if len(s.next) > 0 {
		into, s.next = append(into, s.next[0]...), s.next[1:]
	}
	if n := len(into); n > 0 {
		s.sequence, s.received = into[n-1].Sequence, into[n-1].Received
	}
	return into, nil
}

func (s *parcels) Seen() (uint64, time.Time) { return s.sequence, s.received }

func (s *parcels) Owned() (all [subject.Partitions]bool) {
	for p := range all {
		all[p] = true
	}
	return all
}

func (s *parcels) AtEnd(context.Context) (bool, time.Time, error) {
	return len(s.next) == 0, time.Time{}, nil
}
func (s *parcels) OneServerDates() bool               { return s.alone }
func (s *parcels) StreamCreated() time.Time           { return noon }
func (s *parcels) Position() uint64                   { return 0 }
func (s *parcels) Done(context.Context, uint64) error { return nil }

// noStates has no state of any series.
type noStates struct{ Rows }

func (noStates) DriftStates(context.Context, time.Time, map[int][]store.SeriesKey) ([]store.DriftState, error) {
	return nil, nil
}

// reads returns a reading of a stage without broker and database, whose wall clock is wrong.
func reads(t *testing.T, source Source, slack, jump time.Duration) *reading {
	cfg := Default()
	env := pipelinetest.Env(t, "drift")
	s := &stage{
		cfg: &cfg, env: env, registry: noCards{}, pins: Pins{}, rows: noStates{}, metrics: newMetrics(env.Metrics),
		now: func() time.Time { return time.Now().Round(0).Add(jump) },
	}
	s.build().source = source
	s.owned = s.partitions[:]
	return &reading{stage: s, quiet: time.Now(), slack: slack}
}

// A quiet stream's traces become due once it was quiet for as long as they may wait, whatever
// this machine's wall clock says: not earlier, or a trace that arrives within the lateness would
// be late, and not a day later.
func TestWallClockJumps(t *testing.T) {
	for _, jump := range []time.Duration{24 * time.Hour, -24 * time.Hour, -3 * time.Second} {
		t.Run(jump.String(), func(t *testing.T) {
			arrival := time.Now().Round(0)
			trace := func(n int, at time.Time) stream.Message {
				return message(uint64(n), "a", arrival, usual(fmt.Sprintf("tr-%d", n), "a", at))
			}
			source := &parcels{next: [][]stream.Message{{trace(1, arrival)}, nil, {trace(2, arrival.Add(-time.Second))}, nil}}
			r := reads(t, source, clockSlack, jump)
			for range 4 {
				if err := r.next(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if n := r.partitions[0].fold.queue.waiting; n != 2 {
				t.Errorf("%d traces wait, want both", n)
			}
			r.quiet = r.quiet.Add(-r.cfg.Lateness - clockSlack)
			if err := r.next(t.Context()); err != nil {
				t.Fatal(err)
			}
			y, err := r.take(true)
			if err != nil {
				t.Fatal(err)
			}
			if len(y.points) != 2 || y.points[0].TraceID != "tr-2" || y.points[0].Status != "baseline" || y.points[1].Status != "baseline" {
				t.Errorf("points %+v", y.points)
			}
		})
	}
}

// A quiet partition's traces become due when the broker dates a message of any partition later by the
// lateness, and that message does not make traces of this partition late that were dated before.
func TestTracesOfAnotherPartitionTellTheTime(t *testing.T) {
	other := message(2, "b", noon.Add(Default().Lateness), usual("tr-2", "b", noon))
	other.Partition = 1
	source := &parcels{next: [][]stream.Message{
		{message(1, "a", noon, usual("tr-1", "a", noon))}, {other},
		{message(3, "a", other.Received, usual("tr-3", "a", noon.Add(time.Millisecond)))},
	}}
	r := reads(t, source, clusterSlack, 0)
	for range 3 {
		if err := r.next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	y, err := r.take(true)
	if err != nil {
		t.Fatal(err)
	}
	if len(y.points) != 1 || y.points[0].TraceID != "tr-1" || r.partitions[0].fold.queue.waiting != 1 || y.through != 1 {
		t.Errorf("points %+v, %d traces wait, position %d", y.points, r.partitions[0].fold.queue.waiting, y.through)
	}
}
