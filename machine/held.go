package machine

import (
	"context"
	"errors"
	"slices"

	"github.com/plumbline/plumbline/pipeline/exporter"
	"github.com/plumbline/plumbline/pipeline/service"
)

// hold takes the leases of the stages that a tenant may run only once. It does so before
// anything is created or started that a second machine on the same broker must not have: the
// verifier of a second machine would store traces in a database of its own. hold also refuses
// a directory without a key when the tenant's bundles were signed before, because the machine
// would create a second key.
func (m *Machine) hold(ctx context.Context) (err error) {
	for _, name := range []string{Drift, Exporter} {
		if !slices.Contains(m.cfg.Stages, name) {
			continue
		}
		env, common := m.newEnv(name), m.common()
		if env.Held, err = service.Hold(ctx, &common, env); err != nil {
			return err
		}
		m.held[name] = env
	}
	if env := m.held[Exporter]; env != nil {
		return exporter.Continues(ctx, env, env.Held.Broker, m.keyPath())
	}
	return nil
}

// giveBack releases the leases of stages that were not started.
func (m *Machine) giveBack(ctx context.Context) error {
	var faults []error
	for _, env := range m.held {
		faults = append(faults, env.Held.Close(ctx))
	}
	clear(m.held)
	return errors.Join(faults...)
}

// envOf returns the environment for starting a stage.
func (m *Machine) envOf(name string) *service.Env {
	if env := m.held[name]; env != nil {
		delete(m.held, name) // the stage releases the lease
		return env
	}
	return m.newEnv(name)
}

func (m *Machine) newEnv(name string) *service.Env {
	env := service.NewEnv(name, m.cfg.Version, m.cfg.Log, m.registry, m.health)
	env.DrainBudget, env.Routes = m.cfg.DrainBudget, m.routes
	return env
}
