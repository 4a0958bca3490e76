package main

import (
	"testing"

	"github.com/plumbline/plumbline/engine/enginetest"
	"github.com/plumbline/plumbline/pipeline/store"
)

// The compose file names the database in a variable, and may run it again.
func TestMigrateByVariable(t *testing.T) {
	dsn := enginetest.Database(t)
	t.Setenv("PLUMBLINE_CLICKHOUSE_DSN", dsn)
	for range 2 {
		if code := execute([]string{"migrate"}); code != exitGood {
			t.Fatalf("exit code is %d", code)
		}
	}
	s, err := store.Open(t.Context(), store.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestMigrateSaysWhatIsWrong(t *testing.T) {
	if code := execute([]string{"migrate", "--clickhouse-dsn", "http://127.0.0.1:1/plumbline"}); code == exitGood {
		t.Error("a database that is none was migrated")
	}
}
