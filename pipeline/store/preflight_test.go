package store

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/engine/enginetest"
)

// asService migrates the pipeline's own database and opens it with the privileges of a service.
func asService(t *testing.T) *Store {
	t.Helper()
	e := enginetest.Engine(t)
	if err := Migrate(t.Context(), e.AdminDSN()); err != nil {
		t.Fatal(err)
	}
	return openDSN(t, e.ServiceDSN())
}

// A table that is missing from the list is not inspected, neither at the start of a service nor
// by check.
func TestPreflightKnowsEveryTable(t *testing.T) {
	s, _ := open(t)
	made := one[[]string](t, s, "SELECT groupArray(name) FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree' AND name != '"+versionTable+"'")
	for _, name := range made {
		if known := strings.TrimSuffix(name, localSuffix); local(known) != name || !slices.Contains(tables, known) {
			t.Errorf("table %s is not known", name)
		}
	}
	if len(made) != len(tables) {
		t.Errorf("%d tables are made, %d are known", len(made), len(tables))
	}
}

func TestPreflightOfAServiceIsClean(t *testing.T) {
	if found, err := asService(t).Inspect(t.Context()); err != nil || len(found.Weaknesses)+len(found.Unknown) != 0 {
		t.Errorf("found %v, error %v", found, err)
	}
}

func TestPreflightReportsEveryWeakness(t *testing.T) {
	if onShards {
		t.Skip("TestPreflightOfACluster does the same to the parts of the tables")
	}
	s, _ := open(t) // with the administrator's privileges
	exec(t, s, "ALTER TABLE bundles RESET SETTING fsync_after_insert")
	exec(t, s, "ALTER TABLE verdicts MODIFY SETTING fsync_part_directory = 0")
	exec(t, s, "ALTER TABLE messages RESET SETTING min_rows_to_fsync_after_merge")
	exec(t, s, "ALTER TABLE ledger MODIFY SETTING min_rows_to_fsync_after_merge = 1000") // smaller merges are not synced
	exec(t, s, "RENAME TABLE cards TO elsewhere")
	found, err := s.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{}
	for _, w := range found.Weaknesses {
		said[w.Object+" "+w.Setting] = true
		if w.Why == "" || w.Remedy == "" || w.Found == "" || w.Wanted == "" {
			t.Errorf("incomplete: %v", w)
		}
	}
	for _, want := range []string{
		"table bundles fsync_after_insert", "table verdicts fsync_part_directory", "table messages min_rows_to_fsync_after_merge",
		"table ledger min_rows_to_fsync_after_merge", "table cards existence", "the user right to TRUNCATE", "the user right to ALTER DELETE",
	} {
		if !said[want] {
			t.Errorf("missing: %s\n%v", want, found)
		}
	}
	for weak := range said {
		if strings.HasPrefix(weak, "table traces ") {
			t.Errorf("traces is said to be weak: %v", found)
		}
	}
}

// A service stores and reads. It cannot change or remove what is stored.
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
