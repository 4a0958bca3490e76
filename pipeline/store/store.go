// Package store writes the pipeline's results to ClickHouse, and reads them: traces, verdicts,
// drift, sessions, bundles, cards, revocations, dead letters, ledgers, the results of handshakes
// and tasks, and decisions about messages.
//
// It owns the rows, their queries (sql), and the way rows are written so none is lost or visible
// twice. It does not own the tables, the connections and the classes of errors
// (pipeline/database). It does not judge traces, does not seal sessions and does not use the
// broker: what it needs to know about a message arrives as values (Meta).
//
// Invariants: rows are inserted, and never altered or deleted. Every row carries its tenant.
// Nothing depends on ClickHouse's insert deduplication: rows that may already be stored are looked
// up before they are sent again.
//
// It is one package of more than 1,800 lines because it has the rows of 19 tables, and most of them
// are written and read with the same struct. The methods of Writer and Reader keep the two apart.
package store

import (
	"context"
	"fmt"
	"iter"

	"github.com/plumbline/plumbline/pipeline/database"
)

// Config configures the connections to the database.
type Config = database.Config

// Store reads and writes the rows of one tenant. It is safe for concurrent use.
type Store struct {
	Writer
	Reader
	db *database.DB
}

// Writer inserts rows of one tenant.
type Writer struct {
	db     *database.DB
	tenant string
}

// Reader reads rows of one tenant.
type Reader struct{ db *database.DB }

// Open prepares the connections. The first one is made on demand, so a stage can start before its
// ClickHouse. Ping reports whether ClickHouse answers.
func Open(_ context.Context, cfg Config) (*Store, error) {
	db, err := database.Open(cfg)
	if err != nil {
		return nil, err
	}
	return &Store{Writer{db, db.Config().Tenant}, Reader{db}, db}, nil
}

// Close ends the connections. A server waits for them when it stops, so call Close before
// stopping the server.
func (s *Store) Close() error { return s.db.Close() }

// Ping returns nil if ClickHouse answers: in a cluster, every shard.
func (s *Store) Ping(ctx context.Context) error { return s.db.Ping(ctx) }

// Ready returns nil if ClickHouse answers and has every table.
func (s *Store) Ready(ctx context.Context) error { return s.db.Ready(ctx) }

// Inspect checks whether the database meets the durability requirement. It changes nothing.
func (s *Store) Inspect(ctx context.Context) (database.Inspection, error) { return s.db.Inspect(ctx) }

// Tenant returns the tenant whose rows this store reads and writes.
func (s *Store) Tenant() string { return s.tenant }

// each yields the rows of a query that selects the columns of T. It ends after the first error,
// which contains what was read.
func each[T any](ctx context.Context, db *database.DB, what, query string, args ...any) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for row, err := range database.Each[T](ctx, db, query, args...) {
			if err != nil {
				yield(nil, fmt.Errorf("read %s: %w", what, err))
				return
			}
			if !yield(row, nil) {
				return
			}
		}
	}
}

// read returns the rows of a query that selects the columns of T.
func read[T any](ctx context.Context, db *database.DB, what, query string, args ...any) (rows []T, err error) {
	for row, err := range each[T](ctx, db, what, query, args...) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, *row)
	}
	return rows, nil
}
