package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/drift"
	"github.com/plumbline/plumbline/pipeline/exporter"
	"github.com/plumbline/plumbline/pipeline/ingest"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/verifier"
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
		return fmt.Errorf("stage %s runs already", name)
	}
	env := m.envOf(name)
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
			m.fail(name, err)
		case !errors.Is(err, context.Canceled): // Canceled only means that the stage was stopped
			s.err = err
		}
	}()
	return nil
}

// fail keeps the first failure for Wait.
func (m *Machine) fail(name string, err error) {
	if err == nil {
		err = errors.New("for no reason")
	}
	select {
	case m.failed <- fmt.Errorf("stage %s ended: %w", name, err):
	default:
	}
}

// stageOf configures a stage for this machine.
func (m *Machine) stageOf(name string, env *service.Env) (serve func(context.Context) error, faults []config.Fault) {
	switch name {
	case Ingest:
		cfg := m.cfg.ingest()
		cfg.Common = m.common()
		cfg.HandshakeKeyFile, cfg.MicroKeyFile = m.handshakeKeyPath(), m.cfg.path("keys", "micro.key")
		return func(ctx context.Context) error { return ingest.ServeOn(ctx, m.listener, &cfg, env) }, cfg.Validate()
	case Verifier:
		cfg := verifier.Default()
		cfg.Common, cfg.ClickHouse = m.common(), m.servers.clickhouse
		cfg.MessagePoliciesFile, cfg.Rules = m.cfg.MessagePoliciesFile, m.cfg.Thresholds.Verifier()
		return func(ctx context.Context) error { return verifier.Serve(ctx, &cfg, env) }, cfg.Validate()
	case Drift:
		cfg := drift.Default()
		cfg.Common, cfg.ClickHouse = m.common(), m.servers.clickhouse
		cfg.Rules = m.cfg.Thresholds.Drift(cfg.Rules)
		m.cfg.setDriftMode(&cfg)
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
	return nil, []config.Fault{{Key: "stages", Message: name + " is no stage"}}
}

func (m *Machine) common() config.Common {
	common := config.DefaultCommon("") // the operator's interface is ingest's
	common.Tenant, common.NATS, common.DrainBudget = m.cfg.Tenant, m.servers.nats, m.cfg.DrainBudget
	return common
}

// stopStages drains the stages within the budget, in the order of Stages, also where they
// were started in another order.
func (m *Machine) stopStages(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.DrainBudget)
	defer cancel()
	slices.SortStableFunc(m.stages, func(a, b *stage) int {
		return slices.Index(Stages(), a.name) - slices.Index(Stages(), b.name)
	})
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
		return fmt.Errorf("stage %s did not finish the work in hand within %s: it comes again after the next start",
			s.name, time.Since(began).Round(time.Millisecond))
	}
}
