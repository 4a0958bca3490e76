package store

import (
	"context"
	"errors"
	"log/slog"

	"github.com/plumbline/plumbline/pipeline/run"
)

// ForStage opens the database that a stage's configuration names and waits
// until it answers and has every table. A setting that weakens the promise is an
// error, a Weakness, that names it; with cfg.AllowUnsafe it is logged instead.
func ForStage(ctx context.Context, common *run.Common, cfg *run.ClickHouse, env *run.Env) (*Store, error) {
	s, err := Open(ctx, Config{DSN: cfg.DSN, Tenant: common.Tenant, Stage: env.Name, Cluster: cfg.Cluster})
	if err != nil {
		return nil, err
	}
	health := env.Component("database")
	err = env.Retry.Do(ctx, "reach the database", func() error {
		err := s.Ready(ctx)
		if err == nil {
			err = s.preflight(ctx, cfg.AllowUnsafe, env.Log)
		}
		health.Report(err)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	health.Ask(s.Ping)
	return s, nil
}

// preflight refuses a database under which the promise does not hold, or tells of it.
func (s *Store) preflight(ctx context.Context, allowUnsafe bool, log *slog.Logger) error {
	found, err := s.Inspect(ctx)
	if err != nil {
		return err
	}
	for _, unknown := range found.Unknown {
		log.Warn("a part of the database is not checked", "part", unknown)
	}
	faults := make([]error, len(found.Weaknesses))
	for i, weakness := range found.Weaknesses {
		faults[i] = weakness
	}
	if !allowUnsafe {
		return run.Permanent(errors.Join(faults...))
	}
	for _, weakness := range faults {
		log.Warn("the database weakens the promise", "weakness", weakness)
	}
	return nil
}
