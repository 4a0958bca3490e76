package local

import (
	"context"
	"errors"
	"slices"

	"github.com/plumbline/plumbline/pipeline/exporter"
	"github.com/plumbline/plumbline/pipeline/run"
)

// hold takes the leases of the stages that a tenant runs once, before anything is made or
// started that a second machine on one broker must not have: its verifier would store
// traces in a database of its own. It also refuses a directory without a key where the
// tenant's bundles were signed before: the machine would make one.
func (m *Machine) hold(ctx context.Context) (err error) {
	for _, name := range []string{Drift, Exporter} {
		if !slices.Contains(m.cfg.Stages, name) {
			continue
		}
		env, common := m.newEnv(name), m.common()
		if env.Held, err = run.Hold(ctx, &common, env); err != nil {
			return err
		}
		m.held[name] = env
	}
	if env := m.held[Exporter]; env != nil {
		return exporter.Continues(ctx, env, env.Held.Broker, m.keyPath())
	}
	return nil
}

// giveBack gives back the leases of stages that were not started.
func (m *Machine) giveBack(ctx context.Context) error {
	var faults []error
	for _, env := range m.held {
		faults = append(faults, env.Held.Close(ctx))
	}
	clear(m.held)
	return errors.Join(faults...)
}

// envOf is the environment that a stage is started in.
func (m *Machine) envOf(name string) *run.Env {
	if env := m.held[name]; env != nil {
		delete(m.held, name) // the stage gives the lease back
		return env
	}
	return m.newEnv(name)
}

func (m *Machine) newEnv(name string) *run.Env {
	env := run.NewEnv(name, m.cfg.Version, m.cfg.Log, m.registry, m.health)
	env.DrainBudget, env.Routes = m.cfg.DrainBudget, m.routes
	return env
}
