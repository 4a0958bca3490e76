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
	"github.com/plumbline/plumbline/pipeline/service"
)

// Process is one life of the simulated stage, from start to end.
type Process struct {
	Env *service.Env

	world  *World
	life   int
	cancel context.CancelFunc
	asked  bool // stop was called; under world.mu, like dead
	dead   bool // nothing that it does takes effect any more
}

// Dead reports whether the process was killed.
func (p *Process) Dead() bool {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	return p.dead
}

const (
	// patience is how long, after the time of faults, everything may take to be done: several of
	// the longest waits between two attempts, several ack waits.
	patience = 30 * time.Minute
	// lingering is how long an operation may still hang or take after the time of faults.
	lingering = 2 * time.Minute
	// looks is how often the simulation checks whether everything is done.
	looks = time.Second
	// longestLife is the maximum time after which a process is stopped, while faults happen.
	longestLife = 90 * time.Second
)

// Live runs a process on the world, and the next one after it was killed or stopped, until the
// time of faults is over and done returns true. done is called while no operation is applied.
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
	options := &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "stage" {
			return slog.Attr{}
		}
		return a
	}}
	log := slog.New(slog.NewTextHandler(logger{p}, options))
	p.Env = service.NewEnv("simulated", "test", log, prometheus.NewRegistry(), new(obs.Health))
	p.Env.DrainBudget = 20 * time.Second
	p.Env.Retry.WaitExactly()
	w.note(p.life, "begins", none)
	return p, ctx
}

// watch waits for the end of a process. It reports whether everything is done.
func (w *World) watch(ctx context.Context, p *Process, ended <-chan error, done func() bool) (finished bool) {
	retired := time.Now().Add(time.Duration(w.Dice(fmt.Sprint("life ", p.life)).Int64N(int64(longestLife))))
	tick := time.NewTicker(looks)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done(): // killed: it can do nothing but end
			//lint:ignore errcheck it was killed: its error does not matter
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

// ended records how a process ended. While faults happen, a stage may end with an error, and is
// started again.
func (w *World) ended(p *Process, err error) {
	w.note(p.life, "ends: "+answerOf(err), none)
	switch {
	case p.dead:
	case err == nil && !p.asked:
		w.Wrong("the stage ended by itself")
	case err != nil && time.Since(w.began) > w.stormy+lingering && !errors.Is(err, context.Canceled):
		w.Wrong("the stage ended without a fault: %v", err)
	}
}

// stop asks the process to end, and gives it time.
func (p *Process) stop() {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	p.asked = true
	p.cancel()
}

// kill ends the process at once, without time to finish anything.
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
	p.cancel()
}

// logger writes the log of a process to the history.
type logger struct{ p *Process }

func (l logger) Write(line []byte) (int, error) {
	l.p.world.mu.Lock()
	defer l.p.world.mu.Unlock()
	l.p.world.note(l.p.life, fmt.Sprintf("logs %s", line[:max(0, len(line)-1)]), none)
	return len(line), nil
}
