// Package database connects to ClickHouse, one server or a cluster, and owns the tables and views
// (sql/tables).
//
// It owns the connections and their settings, the migrations, how tables are spread over a
// cluster, the inspection of a live database, and the classes of errors: retry, split, stop. It
// does not own the rows (pipeline/store), and does not use the broker.
//
// Invariants: an INSERT that is answered is on disk, whatever settings the server or its users
// have. Every statement of a migration is idempotent. No statement alters or deletes a row; only
// retention removes rows. Values travel as bound parameters, never in the text of a statement.
package database

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// DB is a database of ClickHouse, for the rows of one tenant. It is safe for concurrent use.
type DB struct {
	driver.Conn
	cfg   Config
	ping  driver.Conn // never waits for a query
	lanes lanes       // for blocks
}

// Open prepares the connections. The first one is made on demand, so a stage can start before its
// ClickHouse. Ping reports whether ClickHouse answers.
func Open(cfg Config) (*DB, error) {
	if err := cfg.complete(); err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	options, err := cfg.options()
	if err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	conn, err := clickhouse.Open(options)
	if err != nil {
		return nil, fmt.Errorf("database: open ClickHouse: %w", err)
	}
	forPing := *options
	forPing.MaxOpenConns, forPing.MaxIdleConns = 1, 1
	forPing.DialTimeout, forPing.ReadTimeout = min(options.DialTimeout, pingTimeout), pingTimeout
	ping, err := clickhouse.Open(&forPing)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("database: open ClickHouse: %w", err), conn.Close())
	}
	lanes, err := newLanes(options)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("database: open ClickHouse: %w", err), ping.Close(), conn.Close())
	}
	return &DB{Conn: conn, cfg: cfg, ping: ping, lanes: lanes}, nil
}

// pingTimeout limits each step of a ping whose context has more time.
const pingTimeout = 2 * time.Second

// Close ends the connections. A server waits for them when it stops, so call Close before
// stopping the server.
func (d *DB) Close() error { return errors.Join(d.ping.Close(), d.lanes.close(), d.Conn.Close()) }

// Config returns the configuration with its defaults.
func (d *DB) Config() Config { return d.cfg }

//go:embed sql/queries/every_shard.sql
var queryEveryShard string

// Ping returns nil if ClickHouse answers, even while all other connections are waiting for it. In
// a cluster it asks every shard: without one of them nothing can be stored or sealed.
func (d *DB) Ping(ctx context.Context) error {
	if err := d.answers(ctx); err != nil || d.cfg.Cluster == "" {
		return err
	}
	var rows uint64
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(d.pinned(readPins)))
	if err := d.ping.QueryRow(ctx, queryEveryShard).Scan(&rows); err != nil {
		return fmt.Errorf("database: ask every shard of cluster %s: %w", d.cfg.Cluster, err)
	}
	return nil
}

func (d *DB) answers(ctx context.Context) error {
	if err := d.ping.Ping(ctx); err != nil {
		return fmt.Errorf("database: ping ClickHouse: %w", err)
	}
	return nil
}

// Each streams the rows of a query that selects columns of T. The tenant is bound as tenant. It
// ends after the first error.
func Each[T any](ctx context.Context, d *DB, query string, args ...any) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		ctx, cancel := d.ReadContext(ctx)
		defer cancel()
		rows, err := d.Query(ctx, query, append(slices.Clip(args), clickhouse.Named("tenant", d.cfg.Tenant))...)
		if err != nil {
			yield(nil, err)
			return
		}
		defer rows.Close()
		var row T // every scan overwrites all of it
		members, err := membersOf(&row, rows.Columns())
		if err != nil {
			yield(nil, err)
			return
		}
		for rows.Next() {
			if err := rows.Scan(members...); err != nil {
				yield(nil, err)
				return
			}
			read := row
			if !yield(&read, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// membersOf returns pointers to the members of row that name the columns in their tag ch.
func membersOf[T any](row *T, columns []string) ([]any, error) {
	value, members := reflect.ValueOf(row).Elem(), make([]any, len(columns))
	for _, f := range reflect.VisibleFields(value.Type()) {
		if i := slices.Index(columns, f.Tag.Get("ch")); i >= 0 {
			members[i] = value.FieldByIndex(f.Index).Addr().Interface()
		}
	}
	if i := slices.Index(members, nil); i >= 0 {
		return nil, fmt.Errorf("no member of %T is column %s", row, columns[i])
	}
	return members, nil
}
