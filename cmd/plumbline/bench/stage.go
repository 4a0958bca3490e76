package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"syscall"

	"github.com/plumbline/plumbline/child"
	"github.com/plumbline/plumbline/cmd/plumbline/bench/floor"
	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/drift"
	"github.com/plumbline/plumbline/pipeline/exporter"
	"github.com/plumbline/plumbline/pipeline/ingest"
	"github.com/plumbline/plumbline/pipeline/reading"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/verifier"
)

// stageChild is the child that runs one stage, or the floor, in a process of its own.
const stageChild = "bench-stage"

func init() { child.Register(stageChild, runStage) }

// The variables with which a child of stageChild is told where broker and database are. Stages have
// their own names for them.
const (
	natsVariable       = "PLUMBLINE_NATS_URL"
	clickhouseVariable = "PLUMBLINE_CLICKHOUSE_DSN"
)

// floorName is the name of the floor's process.
const floorName = "floor"

// runStage is the body of the child. Its arguments are the stage's name and, if its CPU is to be profiled, the
// file of the profile. Its settings are variables, as they are for the services.
func runStage(ctx context.Context, args []string) (err error) {
	if len(args) == 2 {
		stop, err := profile(args[1])
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	switch name := args[0]; name {
	case floorName:
		return floor.Servers{NATSURL: os.Getenv(natsVariable), ClickHouseDSN: os.Getenv(clickhouseVariable)}.Run(ctx)
	case machine.Ingest:
		cfg := ingestSettings{Config: ingest.Default(), Reading: reading.Default()}
		return serve(ctx, name, &cfg, func(ctx context.Context, env *service.Env) (err error) {
			reader, err := reading.Open(ctx, cfg.Reading, cfg.Tenant, env.Log)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, reader.Close()) }()
			return ingest.Serve(ctx, &cfg.Config, env, reader)
		})
	case machine.Verifier:
		cfg := verifier.Default()
		return serve(ctx, name, &cfg, func(ctx context.Context, env *service.Env) error { return verifier.Serve(ctx, &cfg, env) })
	case machine.Drift:
		cfg := drift.Default()
		return serve(ctx, name, &cfg, func(ctx context.Context, env *service.Env) error { return drift.Serve(ctx, &cfg, env) })
	case machine.Exporter:
		cfg := exporter.Default()
		return serve(ctx, name, &cfg, func(ctx context.Context, env *service.Env) error { return exporter.Serve(ctx, &cfg, env) })
	default:
		return fmt.Errorf("%q is not a stage", name)
	}
}

// ingestSettings are those of cmd/ingest.
type ingestSettings struct {
	ingest.Config `embed:""`
	Reading       reading.Config `embed:""`
}

// Validate returns every fault.
func (s *ingestSettings) Validate() []config.Fault {
	return append(s.Config.Validate(), s.Reading.Validate()...)
}

// FileFaults returns the faults of the files that the settings name.
func (s *ingestSettings) FileFaults() []config.Fault {
	return append(s.Config.FileFaults(), s.Reading.FileFaults()...)
}

// serve runs a stage as its own command does, until ctx ends.
func serve(ctx context.Context, name string, cfg config.Config, run func(context.Context, *service.Env) error) error {
	os.Args = []string{name} // the arguments of this child are not the service's
	defer context.AfterFunc(ctx, func() {
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM) // service.Main drains; a signal to oneself cannot fail
	})()
	if code := service.Main(config.Command{Name: name, Version: service.BuildVersion()}, cfg, run); code != service.ExitGood {
		return fmt.Errorf("%s ended with exit code %d", name, code)
	}
	return nil
}

func profile(path string) (stop func() error, err error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}

// stage is a running process of a stage, or of the floor.
type stage struct {
	*child.Process
	name    string // with a number where there are several
	address string // of its interface over HTTP
	output  string // its log: only warnings and errors
}

// start starts a process of a stage. It does not wait until the stage is ready.
func (s *site) start(ctx context.Context, name string) (*stage, error) {
	p := &stage{name: name}
	for n := 2; s.stage(p.name) != nil; n++ {
		p.name = fmt.Sprintf("%s %d", name, n)
	}
	port, err := child.FreePort("127.0.0.1", 0)
	if err != nil {
		return nil, err
	}
	p.address, p.output = fmt.Sprintf("127.0.0.1:%d", port), filepath.Join(s.dir, strings.ReplaceAll(p.name, " ", "-")+".log")
	dsn, listen, own := s.engine.ServiceDSN(), "PLUMBLINE_ADMIN_LISTEN=", []string(nil)
	switch name {
	case floorName:
		dsn = s.engine.AdminDSN()
	case machine.Ingest:
		dsn, listen = s.engine.ReaderDSN(), "PLUMBLINE_LISTEN="
		own = []string{"PLUMBLINE_BUNDLE_DIR=" + filepath.Join(s.dir, "bundles"),
			"PLUMBLINE_HANDSHAKE_KEY_FILE=" + filepath.Join(s.dir, "keys", "handshake.key"),
			"PLUMBLINE_MICRO_KEY_FILE=" + filepath.Join(s.dir, "keys", "micro.key")}
	case machine.Exporter:
		own = []string{"PLUMBLINE_DATA_DIR=" + s.dir}
	}
	args := []string{name}
	if s.cfg.Profile != "" {
		args = append(args, filepath.Join(s.cfg.Profile, filepath.Base(p.output[:len(p.output)-len(".log")])+".pprof"))
	}
	p.Process, err = child.Start(ctx, child.Config{
		Name: p.name, Self: stageChild, Args: args, Output: p.output, Logger: s.cfg.Log,
		Env: append(own, natsVariable+"="+s.broker.URL(), "PLUMBLINE_NATS_MONITOR_URL="+s.broker.MonitorURL(),
			clickhouseVariable+"="+dsn, listen+p.address, "PLUMBLINE_LOG_LEVEL=warn", "PLUMBLINE_LOG_FORMAT=text"),
	})
	if err != nil {
		return nil, err
	}
	s.stages = append(s.stages, p)
	return p, nil
}

// fault returns why the process does not run as it should; nil if it does.
func (p *stage) fault() error {
	state := p.State()
	if state.Restarts == 0 && state.Fault == nil {
		return nil
	}
	lines := append(logged(p.output+".old"), logged(p.output)...)
	return fmt.Errorf("%s ended by itself: %s", p.name, strings.Join(lines, "\n"))
}

// logged returns the lines of a log. A log that does not exist has none.
func logged(path string) []string {
	text, err := os.ReadFile(path)
	if err != nil || len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}
