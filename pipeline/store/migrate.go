package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/cenkalti/backoff/v4"
	"github.com/pressly/goose/v3"
)

//go:embed sql/migrations/*.sql
var migrationSQL embed.FS

// versionTable is the table in which goose records the migrations that ran.
const versionTable = "schema_migrations"

// migrationAttempts bounds how often a migration starts again after it met a concurrent one.
const migrationAttempts = 10

// MigrationState is one migration and when it was applied. A zero time means that it was not.
type MigrationState struct {
	Version   int64
	Name      string
	AppliedAt time.Time
}

// Migrate creates the database of a DSN if it is missing, and brings it to this version's tables
// and views. It runs once and only forward.
//
// Two concurrent runs are harmless. There is no lock that could be left behind, because every
// statement is idempotent. Only goose's own records can conflict: the run that meets the conflict
// starts again.
func Migrate(ctx context.Context, adminDSN string) error {
	return Cluster{}.Migrate(ctx, adminDSN)
}

// Migrate does the same on all servers of a cluster. A statement that some server has not
// executed is not recorded, and the next run executes it again.
func (c Cluster) Migrate(ctx context.Context, adminDSN string) error {
	tables, err := c.prepare(ctx, adminDSN)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	attempt := func() error {
		err := withMigrations(adminDSN, tables, func(p *goose.Provider) error {
			pending, err := p.HasPending(ctx)
			if err != nil || !pending {
				return err
			}
			if err := tables.refuseEverywhere(ctx, adminDSN); err != nil {
				return backoff.Permanent(err)
			}
			_, err = p.Up(ctx)
			return err
		})
		return c.final(err)
	}
	retry := backoff.WithContext(backoff.WithMaxRetries(backoff.NewExponentialBackOff(), migrationAttempts), ctx)
	if err := backoff.Retry(attempt, retry); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// final marks the errors that another attempt would meet again.
func (c Cluster) final(err error) error {
	exception, answered := errors.AsType[*clickhouse.Exception](err)
	switch {
	case answered && slices.Contains(codesNoKeeper, exception.Code):
		return backoff.Permanent(fmt.Errorf("cluster %s: the servers have no Keeper: set <zookeeper> and <distributed_ddl> in every server's configuration, "+
			"or run plumbline migrate --clickhouse-without-keeper for each server: %w", c.Name, err))
	case answered && exception.Code == codeTimeout, err != nil && Classify(err) == Stop:
		return backoff.Permanent(err)
	}
	return err
}

// codeTimeout is ClickHouse's error code when ON CLUSTER has waited too long for a server.
const codeTimeout = 159

// codesNoKeeper are ClickHouse's error codes if there is no Keeper: NO_ELEMENTS_IN_CONFIG,
// NO_ZOOKEEPER and, from the embedded engine, QUERY_IS_PROHIBITED.
var codesNoKeeper = []int32{139, 225, 392}

// MigrationStatus returns all migrations in order.
func MigrationStatus(ctx context.Context, adminDSN string) ([]MigrationState, error) {
	var states []MigrationState
	err := withMigrations(adminDSN, layout{}, func(p *goose.Provider) error {
		statuses, err := p.Status(ctx)
		for _, st := range statuses {
			states = append(states, MigrationState{Version: st.Source.Version, Name: st.Source.Path, AppliedAt: st.AppliedAt})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("migration status: %w", err)
	}
	return states, nil
}

func withMigrations(dsn string, tables layout, do func(*goose.Provider) error) error {
	options, err := parseDSN(dsn)
	if err != nil {
		return err
	}
	db := clickhouse.OpenDB(options)
	p, err := tables.provider(db)
	if err == nil {
		err = do(p)
	}
	return errors.Join(err, db.Close())
}

// provider returns the migrations unchanged, or translated for a cluster.
func (l layout) provider(db *sql.DB) (*goose.Provider, error) {
	files, err := fs.Sub(migrationSQL, "sql/migrations")
	if err != nil {
		return nil, err
	}
	options := []goose.ProviderOption{goose.WithTableName(versionTable), goose.WithDisableGlobalRegistry(true)}
	if l.Name == "" {
		return goose.NewProvider(goose.DialectClickHouse, db, files, options...)
	}
	steps, err := l.steps(files)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectClickHouse, db, nil, append(options, goose.WithGoMigrations(steps...))...)
}
