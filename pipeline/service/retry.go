package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/pipeline/obs"
)

// Retrier repeats an operation until it succeeds, its context ends, or the error is permanent. It
// never gives up by itself. An operation that keeps failing appears in readiness as a component
// with its name. Any goroutine may use it.
type Retrier struct {
	log        *slog.Logger
	retries    *prometheus.CounterVec
	component  func(operation string) *obs.Component
	randomised float64 // part of each wait

	mu      sync.Mutex
	failing map[string]int // calls that are shown in readiness, by operation
}

// The waits between attempts. They double from the first to the longest, each randomised by half.
const (
	firstWait   = 100 * time.Millisecond
	longestWait = 30 * time.Second
)

// When an operation appears in readiness. An attempt that fails once and succeeds when repeated
// is no reason to make the process unready, and neither is a peer that elects a leader.
const (
	shownAfter    = 2 * time.Second // since the first failed attempt in a row
	shownFailures = 2
)

// lasting is how long an attempt of Keep must run until it counts as working.
const lasting = 10 * time.Second

// NewRetrier returns a retrier. It counts retries by operation in plumbline_retries_total,
// registered with metrics, and reports an operation that keeps failing to its component.
func NewRetrier(log *slog.Logger, metrics prometheus.Registerer, component func(operation string) *obs.Component) *Retrier {
	retries := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "plumbline_retries_total",
		Help: "Failed attempts that were retried, by operation.",
	}, []string{"operation"})
	metrics.MustRegister(retries)
	return &Retrier{log: log, retries: retries, component: component, randomised: backoff.DefaultRandomizationFactor, failing: map[string]int{}}
}

func (r *Retrier) backOff() backoff.BackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(firstWait),
		backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(r.randomised),
		backoff.WithMaxInterval(longestWait),
		backoff.WithMaxElapsedTime(0))
}

// WaitExactly disables the randomisation of waits, for reproducible tests. Call it before the
// first Do.
func (r *Retrier) WaitExactly() { r.randomised = 0 }

// Do repeats attempt. operation ("insert traces") is its name in errors, in the metric, in
// readiness and in the log, which has one line for the first failure and one for the recovery. Do
// returns nil, the permanent error, or an error that wraps both the context's error and the last
// attempt's.
func (r *Retrier) Do(ctx context.Context, operation string, attempt func() error) error {
	s := &streak{retrier: r, operation: operation}
	defer s.hide()
	return r.repeat(ctx, s, r.backOff(), attempt)
}

// Keep is Do for an attempt that runs until it fails, such as one that follows a stream. Once an
// attempt has lasted for a while, earlier failures no longer count.
func (r *Retrier) Keep(ctx context.Context, operation string, attempt func() error) error {
	s := &streak{retrier: r, operation: operation}
	defer s.hide()
	wait := r.backOff()
	return r.repeat(ctx, s, wait, func() error {
		working := time.AfterFunc(lasting, s.recovered)
		err := attempt()
		if !working.Stop() {
			s.began = time.Now() // for the next failures
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
		var marked interface{ Permanent() bool }
		if errors.As(last, &marked) && marked.Permanent() {
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

// UnlessEnded drops the error of an actor that had to end. ctx is the context in which it worked.
func UnlessEnded(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// Permanent marks an error that no retry can fix. Other packages may instead give their errors a
// method Permanent() bool.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanentError{err}
}

type permanentError struct{ error }

func (e permanentError) Unwrap() error   { return e.error }
func (e permanentError) Permanent() bool { return true }

// streak is the series of failures of one call of a Retrier since it last worked. A timer may
// report that it works while an attempt is running.
type streak struct {
	retrier   *Retrier
	operation string
	began     time.Time // of the current attempt; only for the goroutine that repeats it

	mu       sync.Mutex
	failures int
	since    time.Time // start of the first failed attempt in a row
	shown    bool      // shown in readiness
}

// failed records an attempt that will be repeated.
func (s *streak) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures++
	s.retrier.retries.WithLabelValues(s.operation).Inc()
	if s.failures == 1 {
		s.since = s.began
		s.retrier.log.Warn("operation failed; retrying until it succeeds", "operation", s.operation, "error", err)
	}
	if s.failures >= shownFailures && time.Since(s.since) >= shownAfter {
		r := s.retrier
		r.mu.Lock()
		defer r.mu.Unlock()
		if !s.shown {
			s.shown = true
			r.failing[s.operation]++
		}
		r.component(s.operation).Down(fmt.Sprintf("fails since %s: %s", s.since.UTC().Format(time.RFC3339), causes(err)))
	}
}

// recovered records that the operation works.
func (s *streak) recovered() {
	s.mu.Lock()
	failures := s.failures
	s.failures = 0
	s.mu.Unlock()
	if failures > 0 {
		s.retrier.log.Info("operation recovered", "operation", s.operation, "failures", failures)
	}
	s.hide()
}

// hide removes the call from readiness. The operation is up when no call of it fails.
func (s *streak) hide() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.shown {
		return
	}
	s.shown = false
	r := s.retrier
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failing[s.operation]--; r.failing[s.operation] == 0 {
		r.component(s.operation).Up()
	}
}

// causes returns the innermost errors. The errors that wrap them may name an agent, a session or
// a file, and anyone may read readiness.
func causes(err error) string {
	var texts []string
	var visit func(error)
	visit = func(err error) {
		several, ok := err.(interface{ Unwrap() []error }) // each layer is looked at
		switch inner := errors.Unwrap(err); {
		case ok:
			for _, inner := range several.Unwrap() {
				visit(inner)
			}
		case inner != nil:
			visit(inner)
		case !slices.Contains(texts, err.Error()):
			texts = append(texts, err.Error())
		}
	}
	visit(err)
	return strings.Join(texts, ": ")
}
