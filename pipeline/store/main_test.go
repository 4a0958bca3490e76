package store

import (
	"context"
	"net/url"
	"testing"

	"github.com/plumbline/plumbline/engine/enginetest"
	"github.com/plumbline/plumbline/pipeline/database"
)

func TestMain(m *testing.M) { enginetest.MainWithoutLeaks(m) }

// onShards makes open distribute the tables over two shards: TestOnShards, make shards.
var onShards = enginetest.Sharded()

// open returns a store on a new, migrated database, and its DSN.
func open(t testing.TB) (*Store, string) {
	t.Helper()
	if onShards {
		dsns := openShards(t)
		return openConfig(t, Config{DSN: dsns[0], Stage: "test", Cluster: enginetest.Cluster}), dsns[0]
	}
	dsn := enginetest.Migrated(t, database.Migrate)
	return openDSN(t, dsn), dsn
}

// servers returns the stores of the servers that hold rows of the database from open.
func servers(t testing.TB, dsn string) []*Store {
	t.Helper()
	if !onShards {
		return []*Store{openDSN(t, dsn)}
	}
	address, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	var all []*Store
	for _, e := range enginetest.Shards(t) {
		at, err := url.Parse(e.AdminDSN())
		if err != nil {
			t.Fatal(err)
		}
		at.Path = address.Path
		all = append(all, openDSN(t, at.String()))
	}
	return all
}

// local returns the name of the part of a table whose rows this server holds.
func local(table string) string {
	if onShards {
		return table + "_local"
	}
	return table
}

func openDSN(t testing.TB, dsn string) *Store {
	t.Helper()
	return openConfig(t, Config{DSN: dsn, Stage: "test"})
}

func openConfig(t testing.TB, cfg Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// openPinned opens the database of open with a DSN that contains the user's own settings.
func openPinned(t testing.TB, dsn, settings string) *Store {
	t.Helper()
	cfg := Config{DSN: dsn + "?" + settings, Stage: "test"}
	if onShards {
		cfg.Cluster = enginetest.Cluster
	}
	return openConfig(t, cfg)
}

// exec runs a statement that the code of this package must not contain.
func exec(t testing.TB, s *Store, statement string) {
	t.Helper()
	if err := s.db.Exec(context.Background(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// one returns the only value of a query.
func one[T any](t testing.TB, s *Store, query string) T {
	t.Helper()
	var v T
	if err := s.db.QueryRow(t.Context(), query).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}
