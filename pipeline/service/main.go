package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/plumbline/plumbline/pipeline/admission"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/telemetry"
)

// The exit codes.
const (
	ExitGood   = 0
	ExitFailed = 1
	ExitUsage  = 2
)

// Main runs a whole service: it fills cfg (which holds the defaults), runs serve and the admin
// interface until serve returns or a signal arrives, and returns the exit code. serve stops when
// its context ends (see Env.Drain). If its error wraps config.ErrUsage the code is ExitUsage, for any
// other error ExitFailed.
func Main(cmd config.Command, cfg config.Config, serve func(context.Context, *Env) error) int {
	shown := cmd
	shown.Version = cmd.Name + " " + VersionText()
	err := config.Load(shown, cfg, os.Args[1:], os.Stdout)
	if errors.Is(err, config.ErrDone) {
		return ExitGood
	}
	var log *slog.Logger
	common := cfg.Shared()
	if err == nil {
		log, err = obs.NewLogger(os.Stderr, common.LogFormat, common.LogLevel)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", cmd.Name, err)
		return ExitUsage
	}
	obs.TakeStandardLog(log)
	env := NewEnv(cmd.Name, cmd.Version, log, obs.NewRegistry(cmd.Version), new(obs.Health))
	env.DrainBudget = common.DrainBudget
	if common.Nice > 0 {
		if err := beNice(common.Nice); err != nil {
			log.Warn("this process does not have the niceness of setting nice", "error", err)
		}
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	endTelemetry, err := env.sendTelemetry(common)
	if err != nil {
		return exitCode(env.Log, fmt.Errorf("%w: %w", config.ErrUsage, err))
	}
	err = supervise(signals, env, withAdmin(common.AdminListen, serve))
	if !errors.Is(err, errLeft) {
		endTelemetry() // after the drain, whose budget it must not use
	}
	return exitCode(env.Log, err)
}

// sendTelemetry begins to send the metrics and spans of a service, where that is configured.
func (e *Env) sendTelemetry(common *config.Common) (end func(), err error) {
	if err := e.ShowCertificate("otlp_ca_file", common.OTLP.CAFile); err != nil {
		return nil, err
	}
	exporter, err := telemetry.Open(&common.OTLP, telemetry.Process{
		Name: e.Name, Version: e.Version, Tenant: common.Tenant, Gatherer: e.Gatherer, Metrics: e.Metrics, Log: e.Log,
	})
	if err != nil {
		return nil, err
	}
	e.Spans = exporter.Tracer(e.Name)
	return exporter.Start(), nil
}

func exitCode(log *slog.Logger, err error) int {
	switch {
	case err == nil:
		return ExitGood
	case errors.Is(err, config.ErrUsage):
		log.Error("cannot start", "error", err)
		return ExitUsage
	default:
		log.Error("stopped", "error", err)
		return ExitFailed
	}
}

// drainGrace is the time that a stage has, after its budget, to notice the end.
const drainGrace = 2 * time.Second

// errLeft means that the second signal interrupted work in progress. Nothing is lost:
// unacknowledged messages are redelivered.
var errLeft = errors.New("stopped at once by the second signal")

// supervise runs serve and ends it on signals.
func supervise(signals <-chan os.Signal, env *Env, serve func(context.Context, *Env) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, env) }()
	select {
	case err := <-ended:
		return unlessCancelled(ctx, err)
	case received := <-signals:
		env.Log.Info("draining", "signal", received.String(), "budget", env.DrainBudget.String())
	}
	env.Health.Drain()
	cancel()
	began := time.Now()
	overrun := time.NewTimer(env.DrainBudget + drainGrace)
	defer overrun.Stop()
	select {
	case err := <-ended:
		if time.Since(began) < env.DrainBudget {
			return unlessCancelled(ctx, err)
		}
	case <-signals:
		return errLeft
	case <-overrun.C:
	}
	return fmt.Errorf("the drain took longer than its budget of %s", env.DrainBudget)
}

// unlessCancelled drops an error that only reports the end of ctx.
func unlessCancelled(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// withAdmin runs the admin interface while serve runs, including the drain.
func withAdmin(address string, serve func(context.Context, *Env) error) func(context.Context, *Env) error {
	if address == "" {
		return serve
	}
	return func(ctx context.Context, env *Env) error {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("admin interface: %w", err)
		}
		adminCtx, stopAdmin := context.WithCancel(context.WithoutCancel(ctx))
		defer stopAdmin()
		limit := admission.New("operators", admission.Operators(), env.Log, env.Metrics)
		return Group(ctx,
			func(context.Context) error {
				return obs.Serve(adminCtx, listener, env.Routes.Before(obs.Handler(env.Health, env.Gatherer)), limit)
			},
			func(ctx context.Context) error {
				defer stopAdmin()
				return serve(ctx, env)
			})
	}
}
