package store

import (
	"errors"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/engine/enginetest"
	"github.com/plumbline/plumbline/pipeline/database"
)

// A service stores and reads. It cannot change or remove what is stored.
func TestEvidenceIsAppendOnly(t *testing.T) {
	e := enginetest.Engine(t)
	if err := database.Migrate(t.Context(), e.AdminDSN()); err != nil {
		t.Fatal(err)
	}
	s := openDSN(t, e.ServiceDSN())
	trace := simple(t, "append-only", "agent", "s", "because")
	insert(t, s, batchOf(s, trace))
	for _, statement := range []string{
		"ALTER TABLE traces DELETE WHERE 1", "DELETE FROM traces WHERE 1", "ALTER TABLE traces UPDATE raw = '' WHERE 1",
		"UPDATE traces SET raw = '' WHERE 1", "TRUNCATE TABLE traces", "DROP TABLE traces", "RENAME TABLE traces TO gone",
		"ALTER TABLE traces DROP COLUMN raw", "ALTER TABLE traces MODIFY TTL received_at", "ALTER TABLE traces DROP PARTITION 202611",
		"OPTIMIZE TABLE traces FINAL", "DETACH TABLE traces", "ALTER TABLE verdicts DELETE WHERE 1", "TRUNCATE TABLE bundles",
	} {
		err := s.db.Exec(t.Context(), statement)
		if exception, ok := errors.AsType[*clickhouse.Exception](err); !ok || exception.Code != 497 {
			t.Errorf("%s: %v, want ACCESS_DENIED", statement, err)
		}
	}
	if got := sessionOf(t, s, trace); len(got) != 1 {
		t.Errorf("%d traces are left", len(got))
	}
}
