package child

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// supervise runs one process after the other until Stop. The result of the
// first start is sent to first; if it is an error, supervise ends.
//
// The goroutine is locked to its thread: the kernel signals a foreign command when the
// thread that started it ends. With the lock, that happens only when this process ends.
func (p *Process) supervise(ctx context.Context, first chan<- error) {
	runtime.LockOSThread()
	defer func() {
		p.report("give back the child's ports", p.giveBack())
		close(p.done)
	}()
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

// launch starts one process and waits until it is ready. After an error no
// process is left.
func (p *Process) launch(ctx context.Context) (*running, error) {
	if err := p.prepare(); err != nil {
		p.fault(err)
		return nil, unprepared{err}
	}
	r, err := p.spawn()
	if err != nil {
		p.fault(err)
		return nil, err
	}
	p.update(func(s *State) { s.Pid = r.cmd.Process.Pid })
	if err := p.awaitReady(ctx, r); err != nil {
		p.end(r)
		p.fault(err)
		if lines := p.LastLines(); lines != "" {
			err = fmt.Errorf("%w; its last output (%s):\n%s", err, p.cfg.Output, lines)
		}
		return nil, err
	}
	p.update(func(s *State) { s.Ready, s.Fault = true, nil })
	p.log.Debug("child is ready", "pid", r.cmd.Process.Pid)
	return r, nil
}

// prepare checks what must be true before a process is started.
func (p *Process) prepare() error {
	if p.cfg.Prepare != nil {
		if err := p.cfg.Prepare(); err != nil {
			return err
		}
	}
	for _, address := range p.cfg.Listens {
		if err := address.nobodyListens(); err != nil {
			return err
		}
	}
	return nil
}

// unprepared is the error of prepare: no process was started.
type unprepared struct{ error }

func (u unprepared) Unwrap() error { return u.error }

// fault records why no process is ready.
func (p *Process) fault(err error) { p.update(func(s *State) { s.Fault = err }) }

// awaitReady polls Config.Ready until it returns nil or the start fails. A pause is a twentieth of the time so
// far, within bounds: each call takes CPU time that the child needs to start.
func (p *Process) awaitReady(ctx context.Context, r *running) error {
	if p.cfg.Ready == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.ReadyTimeout)
	defer cancel()
	asking, stop := p.whileThere(ctx, r)
	defer stop()
	ended := func() error { return fmt.Errorf("it ended before it was ready (%s)", r.status()) }
	for began := time.Now(); ; {
		select {
		case <-r.exited: // another process may answer in its place
			return ended()
		default:
		}
		once, cancel := context.WithTimeout(asking, answerWithin)
		notYet := p.cfg.Ready(once)
		cancel()
		if notYet == nil || errors.As(notYet, new(*backoff.PermanentError)) {
			return notYet
		}
		select {
		case <-time.After(min(max(shortestPoll, time.Since(began)/20), longestPoll)):
		case <-r.exited:
			return ended()
		case <-p.stopping:
			return ErrStopped
		case <-ctx.Done():
			return fmt.Errorf("it was not ready in time: %w (%w)", notYet, ctx.Err())
		}
	}
}

// whileThere returns a context that ends with the process: after the child has ended, another
// process may listen at its address and never answer.
func (p *Process) whileThere(ctx context.Context, r *running) (asking context.Context, stop context.CancelFunc) {
	asking, stop = context.WithCancel(ctx)
	go func() {
		defer stop()
		select {
		case <-r.exited:
		case <-p.stopping:
		case <-asking.Done():
		}
	}()
	return asking, stop
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
	p.fault(fmt.Errorf("it ended unexpectedly (%s)", r.status()))
	p.log.Warn("child ended unexpectedly", "status", r.status(), "output", p.LastLines())
	return true
}

// relaunch tries until a process is ready; it returns nil when Stop was called. After a
// failure of prepare it tries again after a short delay and logs only now and then.
func (p *Process) relaunch() *running {
	var said time.Time
	for wait := p.backoff.NextBackOff(); p.pause(wait); {
		p.update(func(s *State) { s.Restarts++ })
		r, err := p.launch(context.Background())
		if err == nil {
			p.log.Info("child restarted", "pid", r.cmd.Process.Pid)
			return r
		}
		wait = prepareAgain
		if !errors.As(err, new(unprepared)) {
			wait, said = p.backoff.NextBackOff(), time.Time{}
		}
		if !errors.Is(err, ErrStopped) && time.Since(said) >= longestGap {
			said = time.Now()
			p.log.Warn("child did not restart", "error", err)
		}
	}
	return nil
}

// pause waits; it returns false when Stop was called.
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
