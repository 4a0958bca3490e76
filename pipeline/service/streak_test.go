package service

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest/bubble"
)

// down returns what readiness reports for an operation; "" while it is up.
func down(env *Env, operation string) string { return env.Health.Readiness().Down[operation] }

// An operation that fails once, or briefly, is not shown. One that keeps failing is shown within
// ten seconds, with nothing but its causes, until it works.
func TestFailingOperationsShowInReadiness(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		env := testEnv(io.Discard)
		env.Started()
		began, attempts := time.Now(), 0
		var shown time.Duration
		fault := fmt.Errorf("session %q of agent %q: %w", "s", "a", errors.Join(errors.New("no space left on device"), errors.New("password=hunter2")))
		err := env.Retry.Do(t.Context(), "seal sessions", func() error {
			attempts++
			since := time.Since(began)
			switch reason := down(env, "seal sessions"); {
			case reason == "" && since > 10*time.Second:
				t.Errorf("nothing is shown after %s", since)
			case reason == "":
			case shown == 0:
				if shown = since; since < shownAfter || attempts <= shownFailures {
					t.Errorf("shown after %s, %d attempts", since, attempts)
				}
				if !strings.Contains(reason, "no space left on device") || strings.Contains(reason, "hunter2") || strings.Contains(reason, "agent") {
					t.Errorf("the reason is %q", reason)
				}
			}
			if since < time.Minute {
				return fault
			}
			return nil
		})
		if state := env.Health.Readiness(); err != nil || shown == 0 || !state.Ready {
			t.Errorf("%v, shown after %s, at last %+v", err, shown, state)
		}
	})
}

// A single failure is not shown, however long the attempt took.
func TestOneFailureShowsNowhere(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		env := testEnv(io.Discard)
		env.Started()
		failed := false
		if err := env.Retry.Do(t.Context(), "insert traces", func() error {
			if reason := down(env, "insert traces"); reason != "" {
				t.Errorf("shown: %s", reason)
			}
			if failed {
				return nil
			}
			failed = true
			time.Sleep(time.Minute)
			return errors.New("timeout")
		}); err != nil || !env.Health.Readiness().Ready {
			t.Errorf("%v, %+v", err, env.Health.Readiness())
		}
	})
}

// If two calls of one operation fail and one recovers, the other is still shown.
func TestOperationShowsUntilNoCallFails(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		env := testEnv(io.Discard)
		call := func(until time.Duration) {
			began := time.Now()
			if err := env.Retry.Do(t.Context(), "follow", func() error {
				if time.Since(began) < until {
					return errors.New("refused")
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
		}
		go call(10 * time.Second)
		go call(time.Minute)
		time.Sleep(30 * time.Second)
		if down(env, "follow") == "" {
			t.Error("readiness does not show the operation that still fails")
		}
		time.Sleep(2 * time.Minute)
		if reason := down(env, "follow"); reason != "" {
			t.Errorf("all operations work, and readiness shows %q", reason)
		}
	})
}

// An attempt that runs for a while works: its earlier failures no longer count, and a failure an
// hour later is the first one again.
func TestLastingAttemptsShowNoOldFailure(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		env := testEnv(io.Discard)
		began := time.Now()
		go func() {
			if err := env.Retry.Keep(t.Context(), "watch cards", func() error {
				since := time.Since(began)
				if since > 3*time.Hour {
					return nil
				}
				if since > 10*time.Second {
					time.Sleep(time.Hour)
					if reason := down(env, "watch cards"); reason != "" {
						t.Errorf("after %s: %s", time.Since(began), reason)
					}
				}
				return errors.New("the connection is lost")
			}); err != nil {
				t.Error(err)
			}
		}()
		time.Sleep(9 * time.Second)
		if down(env, "watch cards") == "" {
			t.Error("the operation fails, and readiness does not show it")
		}
		time.Sleep(24 * time.Hour)
		if reason := down(env, "watch cards"); reason != "" {
			t.Errorf("at last: %s", reason)
		}
	})
}
