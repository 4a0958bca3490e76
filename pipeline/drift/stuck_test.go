package drift

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest/bubble"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// told is what the broker says of the stream, and how far the stage is.
type told struct {
	last     uint64
	position uint64
	away     error
}

func (b *told) state() stream.State { return stream.State{FirstSequence: 1, LastSequence: b.last} }

// changing is a broker and a term whose answers change.
type changing struct {
	Source
	*atomic.Pointer[told]
}

func (c changing) StreamState(context.Context, string) (stream.State, error) {
	return c.Load().state(), c.Load().away
}

func (c changing) Position() uint64 { return c.Load().position }

// A stage is stuck if traces wait and its position stays. It is not stuck if the position moves or
// nothing waits.
func TestStuckStage(t *testing.T) {
	for name, c := range map[string]struct {
		looks []told
		stuck bool
	}{
		"it stays":        {[]told{{last: 9, position: 7}, {last: 9, position: 7}, {last: 10, position: 7}, {last: 10, position: 7}, {last: 20, position: 7}}, true},
		"it moves":        {[]told{{last: 9, position: 7}, {last: 9, position: 7}, {last: 10, position: 7}, {last: 10, position: 8}, {last: 20, position: 8}}, false},
		"nothing waits":   {[]told{{last: 7, position: 7}, {last: 7, position: 7}, {last: 7, position: 7}, {last: 7, position: 7}, {last: 10, position: 7}}, false},
		"nobody reads it": {[]told{{last: 5}, {last: 5}, {last: 5}, {last: 5}}, true},
	} {
		w, stuck := stuckWatch{most: 3}, false
		for _, found := range c.looks {
			stuck = w.look(found.state(), found.position)
		}
		if stuck != c.stuck {
			t.Errorf("%s: stuck is %v", name, stuck)
		}
	}
}

// startWatch runs the watch of a stage on answers that a test changes.
func startWatch(t *testing.T, cfg *Config, first told) (env *service.Env, answers *atomic.Pointer[told], stop func()) {
	env = pipelinetest.Env(t, "drift")
	env.Started()
	answers = new(atomic.Pointer[told])
	answers.Store(&first)
	s := &stage{cfg: cfg, env: env, source: changing{nil, answers}}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if err := s.watchStuck(ctx, changing{nil, answers}); err != nil {
			t.Error(err)
		}
	}()
	return env, answers, func() { cancel(); synctest.Wait() }
}

// Time during which the broker was unavailable does not count; readiness stays as it was.
func TestOutageIsNotStuck(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		env, broker, stop := startWatch(t, &Config{}, told{last: 9, position: 7})
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
		broker.Store(&told{last: 9, position: 7})
		expect(clusterSlack, true)
		expect(watchSlack+3*watchEvery, false)
		broker.Store(&told{last: 9, position: 9})
		expect(watchEvery, true)
		stop()
	})
}

// A stage that stops when a trace arrives is reported within the ten seconds that METRICS.md
// promises, with the default lateness. When the term ends, it is no longer reported.
func TestStuckStageShowsInTime(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		cfg := Default()
		env, broker, stop := startWatch(t, &cfg, told{last: 7, position: 7})
		time.Sleep(watchEvery)
		synctest.Wait() // right after a look
		broker.Store(&told{last: 8, position: 7})
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
		stop()
		if state := env.Health.Readiness(); !state.Ready {
			t.Errorf("after the term: %+v", state)
		}
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
	pipelinetest.Go(t, s.sharing(process))
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
