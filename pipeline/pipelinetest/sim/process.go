package sim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/run"
)

// Process is one life of the simulated stage.
type Process struct {
	Env *run.Env

	world  *World
	life   int
	cancel context.CancelFunc
	told   bool // it was told to end; under world.mu, as is
	dead   bool // nothing that it does is applied any more
}

// Dead reports whether the process was killed.
func (p *Process) Dead() bool {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	return p.dead
}

const (
	// patience is how long, after the time of faults, everything may take to be done: some
	// of the longest waits between two attempts, some ack waits.
	patience = 30 * time.Minute
	// lingering is how long an operation may still hang or take when the time of faults is over.
	lingering = 2 * time.Minute
	// looks is how often it is asked whether everything is done.
	looks = time.Second
	// longestLife is after how long a process is told to end, at most, while faults happen.
	longestLife = 90 * time.Second
)

// Live runs a process, and the next one where it was killed or told to end, on the same
// world, until the time of faults is over and done holds. done is asked while no operation
// is applied.
func (w *World) Live(done func() bool, process func(ctx context.Context, p *Process) error) {
	var processes sync.WaitGroup
	defer processes.Wait()
	for {
		p, ctx := w.newProcess()
		ended := make(chan error, 1)
		processes.Go(func() { ended <- process(ctx, p) })
		if finished := w.watch(ctx, p, ended, done); finished {
			return
		}
		time.Sleep(time.Duration(w.Dice(fmt.Sprint("restart ", p.life)).Int64N(int64(5 * time.Second))))
	}
}

func (w *World) newProcess() (*Process, context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lives++
	ctx, cancel := context.WithCancel(context.Background())
	p := &Process{world: w, life: w.lives, cancel: cancel}
	log := slog.New(slog.NewTextHandler(logger{p}, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: withoutTime}))
	p.Env = run.NewEnv("simulated", "test", log, prometheus.NewRegistry(), new(obs.Health))
	p.Env.DrainBudget = 20 * time.Second
	p.Env.Retry.WaitExactly()
	w.note(p.life, "begins", none)
	return p, ctx
}

// watch waits for the end of a process. It returns whether everything is done.
func (w *World) watch(ctx context.Context, p *Process, ended <-chan error, done func() bool) (finished bool) {
	retired := time.Now().Add(time.Duration(w.Dice(fmt.Sprint("life ", p.life)).Int64N(int64(longestLife))))
	tick := time.NewTicker(looks)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done(): // killed: it can do nothing but end
			//lint:ignore errcheck how it ended says nothing
			<-ended
			return false
		case err := <-ended:
			w.Within(func() { w.ended(p, err) })
			p.stop()
			return w.Failed()
		case <-tick.C:
		}
		late := time.Since(w.began) > w.stormy+patience
		w.Within(func() {
			finished = w.calm() && done() || len(w.wrong) > 0
			if !finished && late {
				w.Wrong("everything is not done %s after the last fault", patience)
			}
		})
		if finished || late || !w.calm() && time.Now().After(retired) {
			p.stop()
			err := <-ended
			w.Within(func() { w.ended(p, err) })
			return finished || late
		}
	}
}

// ended notes how a process ended. A stage may end with an error while faults happen, and
// is begun again.
func (w *World) ended(p *Process, err error) {
	w.note(p.life, "ends: "+answerOf(err), none)
	switch {
	case p.dead:
	case err == nil && !p.told:
		w.Wrong("the stage ended by itself")
	case err != nil && time.Since(w.began) > w.stormy+lingering && !errors.Is(err, context.Canceled):
		w.Wrong("the stage ended without a fault: %v", err)
	}
}

// stop tells the process to end, and gives it time.
func (p *Process) stop() {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	p.told = true
	p.cancel()
}

// kill ends the process at once: it has no time to finish anything.
func (p *Process) kill() {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	p.die()
}

func (p *Process) die() {
	if p.dead {
		return
	}
	p.dead = true
	if !p.told {
		p.Env.DrainBudget = 0
	}
	p.cancel()
}

// logger puts what a process logs into the history.
type logger struct{ p *Process }

// Write notes one line.
func (l logger) Write(line []byte) (int, error) {
	l.p.world.mu.Lock()
	defer l.p.world.mu.Unlock()
	l.p.world.note(l.p.life, fmt.Sprintf("logs %s", line[:max(0, len(line)-1)]), none)
	return len(line), nil
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey || a.Key == "stage" {
		return slog.Attr{}
	}
	return a
}
