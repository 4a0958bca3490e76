package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/drift"
	"github.com/plumbline/plumbline/pipeline/exporter"
	"github.com/plumbline/plumbline/pipeline/ingest"
	"github.com/plumbline/plumbline/pipeline/reading"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/verifier"
	"github.com/plumbline/plumbline/pipeline/webhook"
	"github.com/plumbline/plumbline/web"
)

// stage is a stage that was started.
type stage struct {
	name   string
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // of the drain, once ended is closed
}

// StartStage starts a stage that Config.Stages left out. A stage can be started
// once. StartStage does not wait until the stage is ready.
func (m *Machine) StartStage(name string) error {
	if slices.ContainsFunc(m.stages, func(s *stage) bool { return s.name == name }) {
		return fmt.Errorf("stage %s is already running", name)
	}
	env := m.held[name]
	if env == nil {
		env = m.newEnv(name)
	}
	delete(m.held, name) // the stage releases the lease
	env.Spans = m.exporter.Tracer(name)
	serve, faults := m.stageOf(name, env)
	if err := config.Faults(faults).Err(); err != nil {
		return fmt.Errorf("stage %s: %w", name, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &stage{name: name, cancel: cancel, ended: make(chan struct{})}
	m.stages = append(m.stages, s)
	go func() {
		defer close(s.ended)
		err := serve(ctx)
		switch {
		case ctx.Err() == nil:
			if err == nil {
				err = errors.New("without an error")
			}
			select {
			case m.failed <- fmt.Errorf("stage %s ended: %w", name, err):
			default: // Wait returns the first failure
			}
		case !errors.Is(err, context.Canceled): // Canceled only means that the stage was stopped
			s.err = err
		}
	}()
	return nil
}

// stageOf configures a stage for this machine.
func (m *Machine) stageOf(name string, env *service.Env) (serve func(context.Context) error, faults []config.Fault) {
	switch name {
	case Ingest:
		cfg := m.cfg.ingest()
		cfg.Common = m.common()
		cfg.HandshakeKeyFile, cfg.MicroKeyFile = m.cfg.path("keys", "handshake.key"), m.cfg.path("keys", "micro.key")
		reads := m.reading()
		serve = func(ctx context.Context) (err error) {
			reader, err := reading.Open(ctx, reads, m.cfg.Tenant, env.Log)
			if err != nil {
				return err // Stop closes the listeners
			}
			defer func() { err = errors.Join(err, reader.Close()) }()
			return ingest.ServeBoth(ctx, m.listener, m.grpc, &cfg, env, reader)
		}
		return serve, append(cfg.Validate(), reads.Validate()...)
	case Verifier:
		cfg := verifier.Default()
		cfg.Common, cfg.ClickHouse = m.common(), m.servers.clickhouse
		cfg.MessagePoliciesFile, cfg.Rules = m.cfg.MessagePoliciesFile, m.cfg.Thresholds.Verifier()
		return func(ctx context.Context) error { return verifier.Serve(ctx, &cfg, env) }, cfg.Validate()
	case Drift:
		cfg := drift.Default()
		cfg.Common, cfg.ClickHouse = m.common(), m.servers.clickhouse
		cfg.Rules = m.cfg.Thresholds.Drift(cfg.Rules)
		cfg.Comparison = *m.cfg.DriftComparison
		if cfg.Mode = cmp.Or(m.cfg.DriftMode, cfg.Mode); aapdrift.Mode(cfg.Mode) == aapdrift.ModePinned {
			cfg.Pins = DriftPins(m.cfg.DataDir)
		}
		cfg.ResidentBytes = cmp.Or(m.cfg.DriftResidentBytes, cfg.ResidentBytes)
		return func(ctx context.Context) error { return drift.Serve(ctx, &cfg, env) }, cfg.Validate()
	case Exporter:
		cfg := exporter.Default()
		cfg.Common, cfg.ClickHouse = m.common(), m.servers.clickhouse
		cfg.DataDir, cfg.KeyFile, cfg.Idle = m.cfg.DataDir, m.keyPath(), cmp.Or(m.cfg.SealIdle, cfg.Idle)
		if m.cfg.Redact != nil {
			cfg.Redact = m.cfg.Redact
		}
		cfg.Schedule, cfg.Copies, cfg.Anchors = m.cfg.SealSchedule, m.cfg.Copies, m.cfg.Anchors
		return func(ctx context.Context) error { return exporter.Serve(ctx, &cfg, env) }, cfg.Validate()
	}
	if name == Webhooks {
		cfg := webhook.Default()
		cfg.Common, cfg.WebhooksFile = m.common(), m.cfg.WebhooksFile
		return func(ctx context.Context) error { return webhook.Serve(ctx, &cfg, env) }, cfg.Validate()
	}
	if name == Console {
		cfg := m.cfg.console()
		cfg.Common, cfg.Listen = m.common(), m.console.Addr().String()
		cfg.ClickHouse = web.ClickHouse{DSN: m.servers.reader, Cluster: m.servers.clickhouse.Cluster}
		cfg.BundleDir = m.cfg.path("bundles")
		cfg.IngestURL, cfg.IngestCAFile, cfg.LettersDSN = m.url(m.listener.Addr()), m.cfg.TLSCertFile, m.servers.operator
		return func(ctx context.Context) error { return web.ServeOn(ctx, m.console, &cfg, env) }, cfg.Validate()
	}
	return nil, []config.Fault{{Key: "stages", Message: name + " is not a stage"}}
}

// reading returns the configuration of ingest's reading side. It reads as people do, and serves the
// bundles of this directory.
func (m *Machine) reading() reading.Config {
	cfg := reading.Default()
	cfg.ClickHouse.DSN, cfg.ClickHouse.Cluster = m.servers.reader, m.servers.clickhouse.Cluster
	cfg.BundleDir = m.cfg.path("bundles")
	return cfg
}

func (m *Machine) common() config.Common {
	common := config.DefaultCommon("") // the operator's interface is ingest's
	common.Tenant, common.NATS, common.DrainBudget = m.cfg.Tenant, m.servers.nats, m.cfg.DrainBudget
	return common
}

// stopStages drains the stages within the budget, in the order of Stages, also where they were started in
// another order.
func (m *Machine) stopStages(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.DrainBudget)
	defer cancel()
	// What is no stage drains at the same time, and is waited for at the end: an endpoint of webhooks that does
	// not answer must not take the stages' time.
	order := append(Stages(), Webhooks, Console)
	slices.SortStableFunc(m.stages, func(a, b *stage) int { return slices.Index(order, a.name) - slices.Index(order, b.name) })
	for _, s := range m.stages {
		if s.name == Webhooks || s.name == Console {
			s.cancel()
		}
	}
	var faults []error
	for _, s := range m.stages {
		faults = append(faults, s.stop(ctx))
	}
	return errors.Join(faults...)
}

// stop ends the stage and waits until it has drained.
func (s *stage) stop(ctx context.Context) error {
	began := time.Now()
	s.cancel()
	select {
	case <-s.ended:
		if s.err != nil {
			return fmt.Errorf("stage %s: %w", s.name, s.err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stage %s did not finish its work within %s: the rest is redelivered after the next start",
			s.name, time.Since(began).Round(time.Millisecond))
	}
}

// hold takes the lease of the exporter, which a tenant may run only once. It does so before
// anything is created or started that a second machine on the same broker must not have: the
// verifier of a second machine would store traces in a database of its own. hold also refuses
// a directory without a key when the tenant's bundles were signed before, because the machine
// would create a second key.
func (m *Machine) hold(ctx context.Context) (err error) {
	if !slices.Contains(m.cfg.Stages, Exporter) {
		return nil
	}
	env, common := m.newEnv(Exporter), m.common()
	if env.Held, err = service.Hold(ctx, &common, env); err != nil {
		return err
	}
	m.held[Exporter] = env
	return exporter.Continues(ctx, env, env.Held.Broker, m.keyPath())
}

func (m *Machine) newEnv(name string) *service.Env {
	env := service.NewEnv(name, m.cfg.Version, m.cfg.Log, m.registry, m.health)
	env.DrainBudget, env.Routes = m.cfg.DrainBudget, m.routes
	return env
}
