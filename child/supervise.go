package child

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// supervise runs one process after the other until Stop. The outcome of the
// first start goes to first; if that is an error, there is no second.
//
// The goroutine keeps its thread: a foreign command is signalled by the kernel
// when the thread that started it ends, which so means the end of this process.
func (p *Process) supervise(ctx context.Context, first chan<- error) {
	runtime.LockOSThread()
	defer close(p.done)
	if ctx.Err() != nil {
		first <- ctx.Err()
		return
	}
	r, err := p.launch(ctx)
	first <- err
	if err != nil {
		return
	}
	for p.watch(r) {
		if r = p.relaunch(); r == nil {
			return
		}
	}
}

// launch starts one process and waits until it is ready. On an error no
// process is left.
func (p *Process) launch(ctx context.Context) (*running, error) {
	if p.cfg.Prepare != nil {
		if err := p.cfg.Prepare(); err != nil {
			return nil, err
		}
	}
	r, err := p.spawn()
	if err != nil {
		return nil, err
	}
	p.update(func(s *State) { s.Pid = r.cmd.Process.Pid })
	if err := p.awaitReady(ctx, r); err != nil {
		p.end(r)
		return nil, p.withOutput(err)
	}
	p.update(func(s *State) { s.Ready = true })
	p.log.Debug("child is ready", "pid", r.cmd.Process.Pid)
	return r, nil
}

// awaitReady polls Config.Ready until it agrees or there is no hope.
func (p *Process) awaitReady(ctx context.Context, r *running) error {
	if p.cfg.Ready == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.ReadyTimeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		notYet := p.cfg.Ready(ctx)
		if notYet == nil || isPermanent(notYet) {
			return notYet
		}
		select {
		case <-tick.C:
		case <-r.exited:
			return fmt.Errorf("it ended before it was ready (%s)", r.status())
		case <-p.stopping:
			return ErrStopped
		case <-ctx.Done():
			return fmt.Errorf("it was not ready in time: %w (%w)", notYet, ctx.Err())
		}
	}
}

func isPermanent(err error) bool {
	var permanent *backoff.PermanentError
	return errors.As(err, &permanent)
}

// watch returns true when the process ended by itself, false when it was
// stopped because Stop was called.
func (p *Process) watch(r *running) bool {
	readySince := time.Now()
	select {
	case <-p.stopping:
		p.end(r)
		p.log.Debug("child is stopped")
		return false
	case <-r.exited:
	}
	p.end(r)
	if time.Since(readySince) >= healthyAfter {
		p.backoff.Reset()
	}
	p.log.Warn("child ended unexpectedly", "status", r.status(), "output", p.LastLines())
	return true
}

// relaunch tries until a process is ready; nil means that Stop was called.
func (p *Process) relaunch() *running {
	for {
		if !p.pause(p.backoff.NextBackOff()) {
			return nil
		}
		p.update(func(s *State) { s.Restarts++ })
		r, err := p.launch(context.Background())
		if err == nil {
			p.log.Info("child is back", "pid", r.cmd.Process.Pid)
			return r
		}
		if !errors.Is(err, ErrStopped) {
			p.log.Warn("child did not restart", "error", err)
		}
	}
}

// pause waits; false means that Stop was called.
func (p *Process) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.stopping:
		return false
	}
}
