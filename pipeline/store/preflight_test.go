package store

import (
	"errors"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/engine/enginetest"
)

// asService migrates the pipeline's own database and opens it as a service does.
func asService(t *testing.T) *Store {
	t.Helper()
	e := enginetest.Engine(t)
	if err := Migrate(t.Context(), e.AdminDSN()); err != nil {
		t.Fatal(err)
	}
	return openDSN(t, e.ServiceDSN())
}

func TestPreflightOfAServiceIsClean(t *testing.T) {
	if err := asService(t).Preflight(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestPreflightReportsEveryWeakness(t *testing.T) {
	s, _ := open(t) // as the administrator
	exec(t, s, "ALTER TABLE bundles RESET SETTING fsync_after_insert")
	exec(t, s, "RENAME TABLE cards TO elsewhere")
	err := s.Preflight(t.Context())
	if err == nil {
		t.Fatal("no fault found")
	}
	for _, want := range []string{
		"table bundles lacks fsync_after_insert = 1", "table cards is missing",
		"this user may TRUNCATE traces", "this user may ALTER DELETE verdicts",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing: %s\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "table traces lacks") {
		t.Errorf("traces is said to be weak: %v", err)
	}
}

// A service stores and reads, and cannot change or remove what is stored.
func TestEvidenceIsAppendOnly(t *testing.T) {
	s := asService(t)
	trace := simple(t, "append-only", "agent", "s", "because")
	insert(t, s, batchOf(s, trace))
	for _, statement := range []string{
		"ALTER TABLE traces DELETE WHERE 1", "DELETE FROM traces WHERE 1", "ALTER TABLE traces UPDATE raw = '' WHERE 1",
		"UPDATE traces SET raw = '' WHERE 1", "TRUNCATE TABLE traces", "DROP TABLE traces", "RENAME TABLE traces TO gone",
		"ALTER TABLE traces DROP COLUMN raw", "ALTER TABLE traces MODIFY TTL received_at", "ALTER TABLE traces DROP PARTITION 202611",
		"OPTIMIZE TABLE traces FINAL", "DETACH TABLE traces", "ALTER TABLE verdicts DELETE WHERE 1", "TRUNCATE TABLE bundles",
	} {
		err := s.conn.Exec(t.Context(), statement)
		if exception, ok := errors.AsType[*clickhouse.Exception](err); !ok || exception.Code != 497 {
			t.Errorf("%s: %v, want ACCESS_DENIED", statement, err)
		}
	}
	if got := sessionOf(t, s, trace); len(got) != 1 {
		t.Errorf("%d traces are left", len(got))
	}
}
