package service

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

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
		s.retrier.log.Warn("operation failed, retrying", "operation", s.operation, "error", err)
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
