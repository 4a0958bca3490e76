package child

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Config describes one supervised child.
type Config struct {
	// Name identifies the child in log records and errors.
	Name string
	// Self is the registered function to run in a copy of this binary, or in Program.
	// Exactly one of Self and Command is set.
	Self string
	// Program is the path of another binary in which Self is registered, and which calls Dispatch.
	// Empty is this binary.
	Program string
	// Command is the path of a foreign program, which must end on SIGTERM.
	Command string
	// Args follow the function's name or the command's path.
	Args []string
	// Env is added to the environment of this process.
	Env []string
	// Dir is the working directory; empty is the one of this process.
	Dir string
	// Output is the file that receives the child's standard output and error.
	// It starts empty with each process; the previous file is kept as Output.old.
	Output string
	// Prepare runs before each start and before each restart. A restart repeats it until it
	// succeeds. Optional.
	Prepare func() error
	// Listens are the TCP addresses of the child. It is started when nobody else listens there; a
	// restart waits for that. On Linux, no other child gets their ports before Stop, also while this
	// one is down. Optional.
	Listens []Address
	// Ready returns nil once the child can be used. It is called every few
	// milliseconds until then, never afterwards. Its context ends with the process,
	// and after five seconds at the latest. An error wrapped by backoff.Permanent
	// means that the process will never be ready: the process is ended.
	// If Ready is nil, the child is ready when it has started.
	Ready func(ctx context.Context) error
	// ReadyTimeout bounds one start; default 30 s.
	ReadyTimeout time.Duration
	// Grace is how long a clean stop may take before SIGKILL; default 10 s.
	Grace time.Duration
	// Logger receives the changes of state; default slog.Default().
	Logger *slog.Logger
}

const (
	// shortestPoll and longestPoll bound the pause between two calls of Config.Ready.
	shortestPoll = 5 * time.Millisecond
	longestPoll  = 250 * time.Millisecond
	// healthyAfter is how long a process must have been ready for the next
	// crash to count as the first.
	healthyAfter = 30 * time.Second

	firstDelay = 100 * time.Millisecond
	longestGap = 10 * time.Second
	// prepareAgain is the delay after Config.Prepare failed or an address was taken; a check is cheap.
	prepareAgain = 500 * time.Millisecond
	// answerWithin bounds one call of Config.Ready.
	answerWithin = 5 * time.Second
)

// State is the state of the child at one moment.
type State struct {
	// Pid of the running process; 0 while there is none.
	Pid int
	// Ready is set once Config.Ready has returned nil for this process.
	Ready bool
	// Restarts counts the attempts to start a process after the first.
	Restarts int
	// Fault is why no process is ready after an earlier one was; nil while one is ready.
	Fault error
}

// Process is a supervised child. All methods are safe for concurrent use.
type Process struct {
	cfg     Config
	log     *slog.Logger
	backoff *backoff.ExponentialBackOff

	reserved []io.Closer // the ports of Config.Listens, until no process will be started

	stopOnce, hurryOnce sync.Once

	stopping chan struct{} // closed by the first Stop
	hurry    chan struct{} // closed when the context of a Stop has ended
	done     chan struct{} // closed when no process runs and none will be started

	mu      sync.Mutex
	state   State
	changed chan struct{} // closed and replaced at each change of state
}

// ErrStopped is returned by Await after the child was stopped.
var ErrStopped = errors.New("child: stopped")

// Start starts the child and returns when it is ready. ctx bounds this first
// start only; afterwards the child lives until Stop. If the child does not become
// ready, the error quotes its last lines of output.
func Start(ctx context.Context, cfg Config) (*Process, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	p := &Process{
		cfg: cfg,
		log: cfg.Logger.With("child", cfg.Name),
		backoff: backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstDelay), backoff.WithMaxInterval(longestGap),
			backoff.WithMaxElapsedTime(0)), // never give up
		stopping: make(chan struct{}),
		hurry:    make(chan struct{}),
		done:     make(chan struct{}),
		changed:  make(chan struct{}),
	}
	if err := p.reserve(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", cfg.Name, err), p.giveBack())
	}
	first := make(chan error, 1)
	go p.supervise(ctx, first)
	if err := <-first; err != nil {
		<-p.done // its addresses are free then
		return nil, fmt.Errorf("start %s: %w", cfg.Name, err)
	}
	return p, nil
}

func (c *Config) complete() error {
	switch {
	case c.Name == "" || c.Output == "":
		return errors.New("child: Name and Output must be set")
	case (c.Self == "") == (c.Command == ""):
		return errors.New("child: exactly one of Self and Command must be set")
	case c.Program != "" && c.Self == "":
		return errors.New("child: Program needs Self")
	case c.Self != "" && c.Program == "" && !Registered(c.Self):
		return unregistered(c.Self)
	case c.Self != "" && c.Program == "" && !dispatched:
		// Without Dispatch the copy would run this program again, and so on.
		return errors.New("child: Dispatch was not called first in main")
	}
	c.ReadyTimeout = cmp.Or(c.ReadyTimeout, 30*time.Second)
	c.Grace = cmp.Or(c.Grace, 10*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return nil
}

// Stop ends the child and returns when it is gone. It requests a clean end, and kills
// the child when Config.Grace or ctx is over, whichever comes first. It reports the end
// of ctx as an error. Every call waits until the child is gone.
func (p *Process) Stop(ctx context.Context) error {
	p.stopOnce.Do(func() { close(p.stopping) })
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
	}
	p.hurryOnce.Do(func() { close(p.hurry) })
	<-p.done
	return fmt.Errorf("stop %s: killed: %w", p.cfg.Name, ctx.Err())
}

// Pid returns the process id of the running child, 0 while there is none.
func (p *Process) Pid() int { return p.State().Pid }

// State returns the current state.
func (p *Process) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// Await returns when the state satisfies the condition. Its error is that of ctx,
// or ErrStopped if the child was stopped first.
func (p *Process) Await(ctx context.Context, condition func(State) bool) error {
	for {
		p.mu.Lock()
		state, changed := p.state, p.changed
		p.mu.Unlock()
		if condition(state) {
			return nil
		}
		select {
		case <-changed:
		case <-p.done:
			return ErrStopped
		case <-ctx.Done():
			return fmt.Errorf("await %s: %w", p.cfg.Name, ctx.Err())
		}
	}
}

func (p *Process) update(change func(*State)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.state)
	close(p.changed)
	p.changed = make(chan struct{})
}
