package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.uber.org/goleak"

	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/pipelinetest/bubble"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func testEnv(log io.Writer) *Env {
	logger := slog.New(slog.NewTextHandler(log, nil))
	return NewEnv("tester", "1", logger, obs.NewRegistry("1"), new(obs.Health))
}

func signalled(signals ...os.Signal) chan os.Signal {
	queue := make(chan os.Signal, 2)
	for _, s := range signals {
		queue <- s
	}
	return queue
}

func TestFirstSignalDrains(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		env := testEnv(io.Discard)
		finished := false
		err := supervise(signalled(syscall.SIGTERM), env, func(ctx context.Context, env *Env) error {
			work, stop := env.Drain(ctx)
			defer stop()
			<-ctx.Done()
			time.Sleep(env.DrainBudget - time.Second) // the insert in progress
			finished = work.Err() == nil
			return ctx.Err()
		})
		if err != nil || !finished {
			t.Errorf("%v, work finished %v; want a clean end within the budget", err, finished)
		}
		if state := env.Health.Readiness(); state.Ready || !state.Draining {
			t.Errorf("readiness while draining: %+v", state)
		}
	})
}

func TestWorkEndsWithTheBudget(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		env := testEnv(io.Discard)
		ctx, cancel := context.WithCancel(t.Context())
		work, stop := env.Drain(ctx)
		defer stop()
		cancel()
		start := time.Now()
		<-work.Done()
		if took := time.Since(start); took != env.DrainBudget {
			t.Errorf("work ended after %s, want %s", took, env.DrainBudget)
		}
	})
}

func TestDrainThatOverrunsFails(t *testing.T) {
	for name, stubborn := range map[string]bool{"gives its work up": false, "notices nothing": true} {
		bubble.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			err := supervise(signalled(syscall.SIGTERM), testEnv(io.Discard), func(ctx context.Context, env *Env) error {
				work, stop := env.Drain(ctx)
				defer stop()
				<-work.Done()
				if stubborn {
					<-release
				}
				return work.Err()
			})
			close(release)
			if err == nil || !strings.Contains(err.Error(), "budget of 30s") {
				t.Errorf("%s: %v, want the budget named", name, err)
			}
		})
	}
}

func TestSecondSignalLeavesAtOnce(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	err := supervise(signalled(syscall.SIGINT, syscall.SIGINT), testEnv(io.Discard), func(context.Context, *Env) error {
		<-release
		return nil
	})
	if !errors.Is(err, errLeft) {
		t.Errorf("%v, want errLeft", err)
	}
}

func TestExitCodes(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for want, err := range map[int]error{
		ExitGood:   nil,
		ExitFailed: errors.New("broken"),
		ExitUsage:  fmt.Errorf("open mode: %w", config.ErrUsage),
	} {
		if got := exitCode(log, err); got != want {
			t.Errorf("%v: exit %d, want %d", err, got, want)
		}
	}
}

func TestAdminServesUntilTheDrainIsOver(t *testing.T) {
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := probe.Addr().String()
	if err := probe.Close(); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ctx, cancel := context.WithCancel(t.Context())
	status := 0
	stage := func(ctx context.Context, env *Env) error {
		cancel()
		<-ctx.Done()
		env.Health.Drain()
		answer, err := client.Get("http://" + address + "/readyz")
		if err != nil {
			return err
		}
		status = answer.StatusCode
		return answer.Body.Close()
	}
	env := testEnv(io.Discard)
	if err := withAdmin(address, stage)(ctx, env); err != nil {
		t.Fatal(err)
	}
	if status != http.StatusServiceUnavailable {
		t.Errorf("readiness while draining: %d, want 503", status)
	}
}

func TestAdminAddressTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	env := testEnv(io.Discard)
	err = withAdmin(taken.Addr().String(), func(context.Context, *Env) error {
		t.Error("served without an admin interface")
		return nil
	})(t.Context(), env)
	if err == nil || !strings.Contains(err.Error(), "admin interface") {
		t.Errorf("%v, want the admin interface named", err)
	}
}

func TestGroupEndsWithItsFirstError(t *testing.T) {
	broken := errors.New("broken")
	err := Group(t.Context(),
		func(context.Context) error { return broken },
		func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	if !errors.Is(err, broken) {
		t.Errorf("%v, want the first error", err)
	}
}

// counted returns plumbline_retries_total, summed over all operations.
func counted(t *testing.T, env *Env) (sum float64) {
	t.Helper()
	families, err := env.Gatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "plumbline_retries_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			sum += metric.GetCounter().GetValue()
		}
	}
	return sum
}

func TestRetryLogsOnceAndCounts(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var log strings.Builder
		env := testEnv(&log)
		attempts := 0
		start := time.Now()
		err := env.Retry.Do(t.Context(), "insert traces", func() error {
			attempts++
			if attempts <= 40 { // beyond the fifteen minutes after which the library would give up
				return errors.New("connection refused")
			}
			return nil
		})
		if err != nil || attempts != 41 {
			t.Fatalf("%v after %d attempts", err, attempts)
		}
		if took := time.Since(start); took < 10*time.Minute {
			t.Errorf("40 retries took %s: the waits do not grow", took)
		}
		if got := strings.Count(log.String(), "\n"); got != 2 {
			t.Errorf("%d log lines, want the failure and the recovery:\n%s", got, log.String())
		}
		if got := counted(t, env); got != 40 {
			t.Errorf("%v retries counted, want 40", got)
		}
	})
}

type deployment struct{ error }

func (deployment) Permanent() bool { return true }

func TestPermanentErrorsStopARetry(t *testing.T) {
	cause := errors.New("unknown table")
	for _, permanent := range []error{
		Permanent(cause),
		fmt.Errorf("insert: %w", Permanent(cause)),
		fmt.Errorf("insert: %w", deployment{cause}),
		fmt.Errorf("insert: %w", backoff.Permanent(cause)),
	} {
		attempts := 0
		err := testEnv(io.Discard).Retry.Do(t.Context(), "insert traces", func() error { attempts++; return permanent })
		if attempts != 1 || err == nil || !strings.HasPrefix(err.Error(), "insert traces: ") || !strings.Contains(err.Error(), "unknown table") {
			t.Errorf("%v after %d attempts, want one", err, attempts)
		}
	}
	if Permanent(nil) != nil {
		t.Error("nil became an error")
	}
}

func TestRetryEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	refused := errors.New("connection refused")
	err := testEnv(io.Discard).Retry.Do(ctx, "publish", func() error { cancel(); return refused })
	if !errors.Is(err, context.Canceled) || !errors.Is(err, refused) {
		t.Errorf("%v, want both the context's error and the last attempt's", err)
	}
}
