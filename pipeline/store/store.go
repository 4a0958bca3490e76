package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

var queryEveryShard = mustQuery("every_shard")

// Store reads and writes the rows of one tenant. It is safe for concurrent use.
type Store struct {
	cfg  Config
	conn driver.Conn
	ping driver.Conn // never waits for a query
}

// Open prepares the connections. The first one is made on demand, so a stage can start before its
// ClickHouse. Ping reports whether ClickHouse answers.
func Open(_ context.Context, cfg Config) (*Store, error) {
	if err := cfg.complete(); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	options, err := cfg.options()
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	conn, err := clickhouse.Open(options)
	if err != nil {
		return nil, fmt.Errorf("store: open ClickHouse: %w", err)
	}
	ping, err := clickhouse.Open(forPing(options))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store: open ClickHouse: %w", err), conn.Close())
	}
	return &Store{cfg: cfg, conn: conn, ping: ping}, nil
}

// Close ends the connections. A server waits for them when it stops, so call Close before
// stopping the server.
func (s *Store) Close() error { return errors.Join(s.ping.Close(), s.conn.Close()) }

// Ping returns nil if ClickHouse answers, even while all other connections are waiting for it. In
// a cluster it asks every shard: without one of them nothing can be stored or sealed.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.answers(ctx); err != nil {
		return err
	}
	if s.cfg.Cluster == "" {
		return nil
	}
	var rows uint64
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(s.pinned(readPins)))
	if err := s.ping.QueryRow(ctx, queryEveryShard).Scan(&rows); err != nil {
		return fmt.Errorf("store: ask every shard of cluster %s: %w", s.cfg.Cluster, err)
	}
	return nil
}

func (s *Store) answers(ctx context.Context) error {
	if err := s.ping.Ping(ctx); err != nil {
		return fmt.Errorf("store: ping ClickHouse: %w", err)
	}
	return nil
}

// Ready returns nil if ClickHouse answers and has every table.
func (s *Store) Ready(ctx context.Context) error {
	if err := s.answers(ctx); err != nil {
		return err
	}
	return s.tablesExist(ctx)
}

// Tenant returns the tenant whose rows this store reads and writes.
func (s *Store) Tenant() string { return s.cfg.Tenant }
