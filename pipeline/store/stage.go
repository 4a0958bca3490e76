package store

import (
	"context"
	"errors"

	"github.com/plumbline/plumbline/pipeline/run"
)

// ForStage opens the database that a stage's configuration names and waits
// until it answers and has every table.
func ForStage(ctx context.Context, common *run.Common, cfg *run.ClickHouse, env *run.Env) (*Store, error) {
	s, err := Open(ctx, Config{DSN: cfg.DSN, Tenant: common.Tenant, Stage: env.Name})
	if err != nil {
		return nil, err
	}
	health := env.Health.Component("database")
	err = env.Retry.Do(ctx, "reach the database", func() error {
		err := s.Ready(ctx)
		health.Report(err)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}
