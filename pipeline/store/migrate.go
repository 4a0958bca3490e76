package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/cenkalti/backoff/v4"
	"github.com/pressly/goose/v3"
)

//go:embed sql/migrations/*.sql
var migrationSQL embed.FS

// versionTable is where goose notes the migrations that ran.
const versionTable = "schema_migrations"

// migrationAttempts bounds how often a migration that met another is begun anew.
const migrationAttempts = 10

// MigrationState is one migration and when it was applied; zero: it was not.
type MigrationState struct {
	Version   int64
	Name      string
	AppliedAt time.Time
}

// Migrate brings the database of a DSN, made where it is missing, to this
// version's tables and views. It is one-shot and forward only.
//
// Two at once are harmless: there is no lock to be left behind, because every
// statement is idempotent; goose's own notes are what the two may trip over,
// and the one that trips begins anew.
func Migrate(ctx context.Context, adminDSN string) error {
	if err := createDatabase(ctx, adminDSN); err != nil {
		return fmt.Errorf("migrate: create the database: %w", err)
	}
	attempt := func() error {
		err := withMigrations(adminDSN, func(p *goose.Provider) error {
			_, err := p.Up(ctx)
			return err
		})
		if err != nil && Classify(err) == Stop {
			return backoff.Permanent(err)
		}
		return err
	}
	retry := backoff.WithContext(backoff.WithMaxRetries(backoff.NewExponentialBackOff(), migrationAttempts), ctx)
	if err := backoff.Retry(attempt, retry); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// MigrationStatus lists all migrations in order.
func MigrationStatus(ctx context.Context, adminDSN string) ([]MigrationState, error) {
	var states []MigrationState
	err := withMigrations(adminDSN, func(p *goose.Provider) error {
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

func withMigrations(dsn string, do func(*goose.Provider) error) error {
	options, err := parseDSN(dsn)
	if err != nil {
		return err
	}
	db := clickhouse.OpenDB(options)
	return errors.Join(migrations(db, do), db.Close())
}

func migrations(db *sql.DB, do func(*goose.Provider) error) error {
	files, err := fs.Sub(migrationSQL, "sql/migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectClickHouse, db, files,
		goose.WithTableName(versionTable), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	return do(p)
}

// createDatabase connects without one and makes it unless it is there: who may only
// read and insert migrates nothing, and finds that nothing is to be migrated.
func createDatabase(ctx context.Context, dsn string) error {
	options, err := parseDSN(dsn)
	if err != nil {
		return err
	}
	name := options.Auth.Database
	if name == "" {
		return errors.New("clickhouse.dsn: names no database")
	}
	options.Auth.Database = ""
	conn, err := clickhouse.Open(options)
	if err != nil {
		return err
	}
	var there uint64
	err = conn.QueryRow(ctx, "SELECT count() FROM system.databases WHERE name = {name:String}", clickhouse.Named("name", name)).Scan(&there)
	if err == nil && there == 0 {
		err = conn.Exec(ctx, "CREATE DATABASE IF NOT EXISTS {name:Identifier}", clickhouse.Named("name", name))
	}
	return errors.Join(err, conn.Close())
}
