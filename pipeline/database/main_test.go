package database

import (
	"context"
	"testing"

	"github.com/plumbline/plumbline/engine/enginetest"
)

func TestMain(m *testing.M) { enginetest.MainWithoutLeaks(m) }

// onShards makes open spread the tables over two shards: make shards.
var onShards = enginetest.Sharded()

// open returns a new, migrated database, and its DSN.
func open(t testing.TB) (*DB, string) {
	t.Helper()
	if onShards {
		dsns := openShards(t)
		return openConfig(t, Config{DSN: dsns[0], Stage: "test", Cluster: enginetest.Cluster}), dsns[0]
	}
	dsn := enginetest.Migrated(t, Migrate)
	return openDSN(t, dsn), dsn
}

// local returns the name of the part of a table whose rows this server has.
func local(table string) string {
	if onShards {
		return table + localSuffix
	}
	return table
}

func openDSN(t testing.TB, dsn string) *DB {
	t.Helper()
	return openConfig(t, Config{DSN: dsn, Stage: "test"})
}

func openConfig(t testing.TB, cfg Config) *DB {
	t.Helper()
	d, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// exec runs a statement that the code of this package must not contain.
func exec(t testing.TB, d *DB, statement string) {
	t.Helper()
	if err := d.Exec(context.Background(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// one returns the only value of a query.
func one[T any](t testing.TB, d *DB, query string) T {
	t.Helper()
	var v T
	if err := d.QueryRow(t.Context(), query).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}
