package store

import (
	"context"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/plumbline/plumbline/engine/enginetest"
)

func TestMain(m *testing.M) {
	code := enginetest.Run(m.Run)
	if err := goleak.Find(); err != nil && code == 0 {
		println(err.Error())
		code = 1
	}
	os.Exit(code)
}

// open returns a store on a fresh, migrated database, and its DSN.
func open(t testing.TB) (*Store, string) {
	t.Helper()
	dsn := enginetest.Migrated(t, Migrate)
	return openDSN(t, dsn), dsn
}

func openDSN(t testing.TB, dsn string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{DSN: dsn, Stage: "test"})
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

// exec runs a statement that no code of this package may contain.
func exec(t testing.TB, s *Store, statement string) {
	t.Helper()
	if err := s.conn.Exec(context.Background(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// one returns the only value of a query.
func one[T any](t testing.TB, s *Store, query string) T {
	t.Helper()
	var v T
	if err := s.conn.QueryRow(t.Context(), query).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}
