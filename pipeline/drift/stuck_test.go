package drift

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest/bubble"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// told is a broker that reports the given progress of partition 2, and that nothing waits in the
// others.
type told struct {
	last    uint64
	floor   uint64
	unacked int
	pending uint64
	away    error
	asked   int
}

func (b *told) StreamState(context.Context, string) (stream.State, error) {
	return stream.State{LastSequence: b.last}, b.away
}

func (b *told) ConsumerProgress(_ context.Context, _, consumer string) (stream.Progress, error) {
	b.asked++
	if consumer != stream.DriftConsumer(2) {
		return stream.Progress{AckFloor: 5}, b.away
	}
	return stream.Progress{AckFloor: b.floor, Unacked: b.unacked, Pending: b.pending}, b.away
}

// changing is a broker whose answers change.
type changing struct{ *atomic.Pointer[told] }

func (b changing) StreamState(ctx context.Context, name string) (stream.State, error) {
	return b.Load().StreamState(ctx, name)
}

func (b changing) ConsumerProgress(ctx context.Context, name, consumer string) (stream.Progress, error) {
	return b.Load().ConsumerProgress(ctx, name, consumer)
}

// A partition is stuck if traces wait and its floor stays. It is not stuck if the floor moves or
// nothing waits.
func TestStuckPartitions(t *testing.T) {
	type looks []told
	for name, c := range map[string]struct {
		looks
		stuck bool
	}{
		"it stays": {looks{{last: 9, floor: 7, unacked: 2}, {last: 9, floor: 7, unacked: 2}, {last: 10, floor: 7, unacked: 4, pending: 1},
			{last: 10, floor: 7, unacked: 4}, {last: 20, floor: 7, unacked: 4, pending: 9}}, true},
		"it moves": {looks{{last: 9, floor: 7, unacked: 2}, {last: 9, floor: 7, unacked: 2}, {last: 10, floor: 7, unacked: 4, pending: 1},
			{last: 10, floor: 8, unacked: 3}, {last: 20, floor: 8, unacked: 3, pending: 9}}, false},
		"nothing waits":   {looks{{last: 9, floor: 7}, {last: 9, floor: 7}, {last: 9, floor: 7}, {last: 9, floor: 7}, {last: 10, floor: 7, unacked: 1}}, false},
		"nobody reads it": {looks{{last: 5, pending: 5}, {last: 5, pending: 5}, {last: 5, pending: 5}, {last: 5, pending: 5}}, true},
	} {
		w := stuckWatch{most: 3}
		var stuck []int
		for _, found := range c.looks {
			w.broker = &found
			var err error
			if stuck, err = w.look(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := slices.Equal(stuck, []int{2}); got != c.stuck || !got && len(stuck) > 0 {
			t.Errorf("%s: stuck are %v", name, stuck)
		}
	}
}

// While no message arrives, the broker is asked only for the state of the stream.
func TestIdlePartitionsAreNotPolled(t *testing.T) {
	broker := &told{last: 7, floor: 7}
	w := stuckWatch{most: 3, broker: broker}
	for range 3 {
		if stuck, err := w.look(t.Context()); err != nil || len(stuck) > 0 {
			t.Error(stuck, err)
		}
	}
	if broker.asked != subject.Partitions {
		t.Errorf("asked for %d partitions", broker.asked)
	}
}

// Time during which the broker was unavailable does not count; readiness stays as it was.
func TestOutageIsNotStuck(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		env := pipelinetest.Env(t, "drift")
		env.Started()
		s := &stage{cfg: &Config{}, env: env}
		var broker atomic.Pointer[told]
		broker.Store(&told{last: 9, floor: 7, unacked: 2})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			if err := s.watchStuck(ctx, changing{&broker}); err != nil {
				t.Error(err)
			}
		}()
		expect := func(after time.Duration, ready bool) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if state := env.Health.Readiness(); state.Ready != ready {
				t.Errorf("%+v", state)
			}
		}
		expect(watchEvery/2, true) // from here on between two looks
		expect(clusterSlack, true)
		broker.Store(&told{away: errors.New("no answer")})
		expect(time.Minute, true)
		broker.Store(&told{last: 9, floor: 7, unacked: 2})
		expect(clusterSlack, true)
		expect(watchSlack+2*watchEvery, false)
		broker.Store(&told{last: 9, floor: 9})
		expect(watchEvery, true)
		cancel()
		synctest.Wait()
	})
}

// A partition that stops when a trace arrives is reported within the ten seconds that METRICS.md
// promises, with the default lateness.
func TestStuckPartitionShowsInTime(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		env := pipelinetest.Env(t, "drift")
		env.Started()
		cfg := Default()
		s := &stage{cfg: &cfg, env: env}
		var broker atomic.Pointer[told]
		broker.Store(&told{last: 7, floor: 7})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			if err := s.watchStuck(ctx, changing{&broker}); err != nil {
				t.Error(err)
			}
		}()
		time.Sleep(watchEvery)
		synctest.Wait() // right after a look
		broker.Store(&told{last: 8, floor: 7, pending: 1})
		time.Sleep(cfg.Lateness + clusterSlack + watchSlack)
		synctest.Wait()
		if state := env.Health.Readiness(); !state.Ready {
			t.Errorf("reported too early: %+v", state)
		}
		time.Sleep(10*time.Second - (cfg.Lateness + clusterSlack + watchSlack))
		synctest.Wait()
		if state := env.Health.Readiness(); state.Ready {
			t.Error("the stage is ready after ten seconds")
		}
		cancel()
		synctest.Wait()
	})
}

// A database that refuses what drift stores is reported with the name of what it refuses, within
// ten seconds, and no longer than it refuses.
func TestRefusingDatabaseIsReported(t *testing.T) {
	s := newScene(t, fleet.Config{Seed: 3, Agents: 12, Traces: 600})
	process := s.stage(s.connect())
	process.now = func() time.Time { return time.Now().Add(time.Hour) }
	process.env.Started()
	s.Exec(t, "SYSTEM STOP MERGES drift_points")
	s.Exec(t, "ALTER TABLE drift_points MODIFY SETTING parts_to_throw_insert = 1, parts_to_delay_insert = 1")
	pipelinetest.Go(t, process.run)
	s.publish()
	shown := func() string { return process.env.Health.Readiness().Down["insert drift points"] }
	pipelinetest.Await(t, "the first insert refused", func() bool { return pipelinetest.Metric(t, process.env, "plumbline_retries_total", "") > 0 })
	refused := time.Now()
	pipelinetest.Await(t, "the refusal shown", func() bool { return shown() != "" })
	if took := time.Since(refused); took > 10*time.Second {
		t.Errorf("reported after %s", took)
	}
	t.Log(shown())
	s.Exec(t, "ALTER TABLE drift_points RESET SETTING parts_to_throw_insert, parts_to_delay_insert")
	s.Exec(t, "SYSTEM START MERGES drift_points")
	pipelinetest.Await(t, "the refusal forgotten", func() bool { return process.env.Health.Readiness().Ready })
	pipelinetest.Await(t, "every message acknowledged", s.done)
}
