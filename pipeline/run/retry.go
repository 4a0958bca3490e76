package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/pipeline/obs"
)

// Retrier repeats what fails until it succeeds, its context ends, or the error
// is permanent. It never gives up by itself. What keeps failing shows in readiness as a
// component with the operation's name. It may be used by any goroutine.
type Retrier struct {
	log       *slog.Logger
	retries   *prometheus.CounterVec
	component func(operation string) *obs.Component
	backOff   func() backoff.BackOff

	mu      sync.Mutex
	failing map[string]int // calls that readiness shows, by operation
}

// Waits between attempts: they double from the first to the longest, each
// randomised by half.
const (
	firstWait   = 100 * time.Millisecond
	longestWait = 30 * time.Second
)

// When an operation shows in readiness: an attempt that fails once and holds when it is
// repeated is no reason to send anybody away, nor is a peer that elects a leader.
const (
	shownAfter    = 2 * time.Second // since the first attempt in a row that failed
	shownFailures = 2
)

// lasting is how long an attempt of Keep goes on until it is taken to work.
const lasting = 10 * time.Second

// NewRetrier returns a retrier that counts retries by operation in
// plumbline_retries_total, registered with metrics, and reports to the component of an
// operation that keeps failing.
func NewRetrier(log *slog.Logger, metrics prometheus.Registerer, component func(operation string) *obs.Component) *Retrier {
	retries := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "plumbline_retries_total",
		Help: "Attempts that failed and were repeated, by operation.",
	}, []string{"operation"})
	metrics.MustRegister(retries)
	return &Retrier{log: log, retries: retries, component: component, backOff: defaultBackOff, failing: map[string]int{}}
}

func defaultBackOff() backoff.BackOff { return doubling(backoff.DefaultRandomizationFactor) }

func doubling(randomised float64) backoff.BackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(firstWait),
		backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(randomised),
		backoff.WithMaxInterval(longestWait),
		backoff.WithMaxElapsedTime(0))
}

// WaitExactly makes every wait as long as the last time, for a test that is to be
// repeated. It is called before the first Do.
func (r *Retrier) WaitExactly() { r.backOff = func() backoff.BackOff { return doubling(0) } }

// Do repeats attempt. operation ("insert traces") names it in errors, in the
// metric, in readiness and in the log, where one line tells of the first failure and one
// of the recovery. It returns nil, the permanent error, or an error that wraps
// both the context's and the last attempt's.
func (r *Retrier) Do(ctx context.Context, operation string, attempt func() error) error {
	s := &streak{retrier: r, operation: operation}
	defer s.hide()
	return r.repeat(ctx, s, r.backOff(), attempt)
}

// Keep is Do for an attempt that goes on until it fails, such as one that follows a
// stream: what failed before no longer counts once it has lasted for a while.
func (r *Retrier) Keep(ctx context.Context, operation string, attempt func() error) error {
	s := &streak{retrier: r, operation: operation}
	defer s.hide()
	wait := r.backOff()
	return r.repeat(ctx, s, wait, func() error {
		working := time.AfterFunc(lasting, s.recovered)
		err := attempt()
		if !working.Stop() {
			s.began = time.Now() // of what fails from now on
			wait.Reset()
		}
		return err
	})
}

func (r *Retrier) repeat(ctx context.Context, s *streak, wait backoff.BackOff, attempt func() error) error {
	var last error
	err := backoff.RetryNotify(func() error {
		s.began = time.Now()
		last = attempt()
		if isPermanent(last) {
			return backoff.Permanent(last)
		}
		return last
	}, backoff.WithContext(wait, ctx), func(err error, _ time.Duration) { s.failed(err) })
	switch {
	case err == nil:
		s.recovered()
		return nil
	case last != nil && !errors.Is(last, err):
		return fmt.Errorf("%s: %w, after: %w", s.operation, err, last)
	default:
		return fmt.Errorf("%s: %w", s.operation, last)
	}
}

// UnlessEnded drops the error of an actor that was told to end: ctx is the one
// that it worked within.
func UnlessEnded(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// Permanent marks an error that repeating cannot cure. Other packages may
// instead give their errors a method Permanent() bool.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanentError{err}
}

type permanentError struct{ error }

func (e permanentError) Unwrap() error   { return e.error }
func (e permanentError) Permanent() bool { return true }

func isPermanent(err error) bool {
	var marked interface{ Permanent() bool }
	return errors.As(err, &marked) && marked.Permanent()
}
