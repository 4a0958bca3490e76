package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/prometheus/client_golang/prometheus"
)

// Retrier repeats what fails until it succeeds, its context ends, or the error
// is permanent. It never gives up by itself. It may be used by any goroutine.
type Retrier struct {
	log     *slog.Logger
	retries *prometheus.CounterVec
	backOff func() backoff.BackOff
}

// Waits between attempts: they double from the first to the longest, each
// randomised by half.
const (
	firstWait   = 100 * time.Millisecond
	longestWait = 30 * time.Second
)

// NewRetrier returns a retrier that counts retries by operation in
// plumbline_retries_total, registered with metrics.
func NewRetrier(log *slog.Logger, metrics prometheus.Registerer) *Retrier {
	retries := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "plumbline_retries_total",
		Help: "Attempts that failed and were repeated, by operation.",
	}, []string{"operation"})
	metrics.MustRegister(retries)
	return &Retrier{log: log, retries: retries, backOff: defaultBackOff}
}

func defaultBackOff() backoff.BackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(firstWait),
		backoff.WithMultiplier(2),
		backoff.WithMaxInterval(longestWait),
		backoff.WithMaxElapsedTime(0))
}

// Do repeats attempt. operation ("insert traces") names it in errors, in the
// metric and in the log, where one line tells of the first failure and one of
// the recovery. It returns nil, the permanent error, or an error that wraps
// both the context's and the last attempt's.
func (r *Retrier) Do(ctx context.Context, operation string, attempt func() error) error {
	var last error
	failures := 0
	err := backoff.RetryNotify(func() error {
		last = attempt()
		if isPermanent(last) {
			return backoff.Permanent(last)
		}
		return last
	}, backoff.WithContext(r.backOff(), ctx), func(err error, _ time.Duration) {
		failures++
		r.retries.WithLabelValues(operation).Inc()
		if failures == 1 {
			r.log.Warn("operation failed, retrying", "operation", operation, "error", err)
		}
	})
	switch {
	case err == nil && failures > 0:
		r.log.Info("operation recovered", "operation", operation, "failures", failures)
		return nil
	case err == nil:
		return nil
	case last != nil && !errors.Is(last, err):
		return fmt.Errorf("%s: %w, after: %w", operation, err, last)
	default:
		return fmt.Errorf("%s: %w", operation, last)
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
