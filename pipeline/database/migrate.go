package database

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/cenkalti/backoff/v4"
	"github.com/pressly/goose/v3"
)

// The migrations: one file for each table, with its views; views over several tables have files of
// their own. A change of a table that exists is a file of its own with a higher number.
//
//go:embed sql/tables/*.sql
var embedded embed.FS

func Migrations() fs.FS {
	files, err := fs.Sub(embedded, "sql/tables")
	if err != nil {
		panic(err) // the name is valid
	}
	return files
}

// versionTable is the table in which goose records the migrations that ran.
const versionTable = "schema_migrations"

// Until commit aff5234 the tables were created and altered in many steps, which had the numbers up
// to lastOldStep. The result of these steps is that of the migrations from firstMigration on, so a
// database at lastOldStep is taken over: no statement changes anything in it.
const (
	lastOldStep    = 81
	firstMigration = 101
)

// migrationAttempts bounds how often a migration starts again after it met a concurrent one.
const migrationAttempts = 10

// MigrationState is one migration and when it was applied. A zero time means that it was not.
type MigrationState struct {
	Version   int64
	Name      string
	AppliedAt time.Time
}

// Migrate creates the database of a DSN if it is missing, and brings it to this version's tables
// and views, with their comments. It only goes forward.
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
		if err == nil {
			err = tables.refine(ctx, adminDSN)
		}
		if err == nil {
			err = tables.describeAll(ctx, adminDSN)
		}
		return c.final(err)
	}
	retry := backoff.WithContext(backoff.WithMaxRetries(backoff.NewExponentialBackOff(), migrationAttempts), ctx)
	if err := backoff.Retry(attempt, retry); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// prepare connects without a database, creates the database if it is missing, and checks that its
// tables may be migrated.
func (c Cluster) prepare(ctx context.Context, dsn string) (layout, error) {
	options, err := parseDSN(dsn)
	if err != nil {
		return layout{}, err
	}
	l := layout{Cluster: c, database: options.Auth.Database}
	if l.database == "" {
		return l, errors.New("clickhouse.dsn: names no database")
	}
	options.Auth.Database = ""
	conn, err := clickhouse.Open(options)
	if err != nil {
		return l, err
	}
	if err = l.measure(ctx, conn, strings.Join(options.Addr, ",")); err == nil {
		err = createDatabase(ctx, conn, l.database)
	}
	if err == nil {
		err = l.refuseOthers(ctx, conn, "system.tables")
	}
	if err == nil {
		err = refuseOldSteps(ctx, conn, l.database)
	}
	return l, errors.Join(err, conn.Close())
}

// createDatabase creates the database unless it exists. A user who may only read and insert
// cannot migrate, but can still learn that there is nothing to migrate.
func createDatabase(ctx context.Context, conn driver.Conn, name string) error {
	var found uint64
	err := conn.QueryRow(ctx, "SELECT count() FROM system.databases WHERE name = {name:String}", clickhouse.Named("name", name)).Scan(&found)
	if err == nil && found == 0 {
		err = conn.Exec(ctx, "CREATE DATABASE IF NOT EXISTS {name:Identifier}", clickhouse.Named("name", name))
	}
	if err != nil {
		return fmt.Errorf("create the database: %w", err)
	}
	return nil
}

// refuseOldSteps returns an error for a database in which only some of the old steps ran.
func refuseOldSteps(ctx context.Context, conn driver.Conn, name string) error {
	var recorded uint64
	err := conn.QueryRow(ctx, "SELECT count() FROM system.tables WHERE database = {name:String} AND name = {table:String}",
		clickhouse.Named("name", name), clickhouse.Named("table", versionTable)).Scan(&recorded)
	if err != nil {
		return fmt.Errorf("look for the record of migrations: %w", err)
	}
	if recorded == 0 {
		return nil
	}
	var step int64
	err = conn.QueryRow(ctx, "SELECT maxIf(version_id, is_applied = 1 AND version_id < {first:Int64}) FROM {name:Identifier}."+versionTable,
		clickhouse.Named("first", firstMigration), clickhouse.Named("name", name)).Scan(&step)
	if err != nil {
		return fmt.Errorf("read the record of migrations: %w", err)
	}
	if 0 < step && step < lastOldStep {
		return fmt.Errorf("database %s was made by an unreleased version and is at its step %d of %d; only step %[3]d can be taken over: "+
			"run plumbline migrate of commit aff5234 on it first, or migrate a new database and fill it with plumbline replay (docs/SCHEMA.md)",
			name, step, lastOldStep)
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
	case answered && slices.Contains(codesConcurrent, exception.Code):
		return err
	case answered && exception.Code == codeTimeout, err != nil && Classify(err) == Stop:
		return backoff.Permanent(err)
	}
	return err
}

// codesConcurrent are ClickHouse's error codes where a concurrent run has replaced a view or a table at this
// moment, perhaps by that of an earlier migration, which lacks a column: UNKNOWN_IDENTIFIER,
// TABLE_ALREADY_EXISTS and UNKNOWN_TABLE.
var codesConcurrent = []int32{47, 57, 60}

// codesNoKeeper are ClickHouse's error codes if there is no Keeper: NO_ELEMENTS_IN_CONFIG,
// NO_ZOOKEEPER and, from the embedded engine, QUERY_IS_PROHIBITED.
var codesNoKeeper = []int32{139, 225, 392}

// MigrationStatus returns all migrations in order.
func MigrationStatus(ctx context.Context, adminDSN string) ([]MigrationState, error) {
	var states []MigrationState
	names, err := fs.Glob(Migrations(), "*.sql") // in the order of their versions
	if err == nil {
		err = withMigrations(adminDSN, layout{}, func(p *goose.Provider) error {
			statuses, err := p.Status(ctx)
			for i, st := range statuses {
				states = append(states, MigrationState{Version: st.Source.Version, Name: names[i], AppliedAt: st.AppliedAt})
			}
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("migration status: %w", err)
	}
	return states, nil
}

// withMigrations calls do with the migrations for one server or for a cluster.
func withMigrations(dsn string, tables layout, do func(*goose.Provider) error) error {
	options, err := parseDSN(dsn)
	if err != nil {
		return err
	}
	steps, err := tables.steps()
	if err != nil {
		return err
	}
	db := clickhouse.OpenDB(options)
	p, err := goose.NewProvider(goose.DialectClickHouse, db, nil, goose.WithTableName(versionTable), goose.WithDisableGlobalRegistry(true), goose.WithGoMigrations(steps...))
	if err == nil {
		err = do(p)
	}
	return errors.Join(err, db.Close())
}
