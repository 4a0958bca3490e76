package database

import (
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/engine/enginetest"
)

// asService migrates the database plumbline and opens it with the privileges of a service.
func asService(t *testing.T) *DB {
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
	d, _ := open(t)
	made := one[[]string](t, d, "SELECT groupArray(name) FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree' AND name != '"+versionTable+"'")
	for _, name := range made {
		if known := strings.TrimSuffix(name, localSuffix); local(known) != name || !slices.Contains(Tables, known) {
			t.Errorf("table %s is not known", name)
		}
	}
	if len(made) != len(Tables) {
		t.Errorf("%d tables are made, %d are known", len(made), len(Tables))
	}
}

func TestPreflightOfAServiceIsClean(t *testing.T) {
	if found, err := asService(t).Inspect(t.Context()); err != nil || len(found.Weaknesses)+len(found.Unknown) != 0 {
		t.Errorf("found %v, error %v", found, err)
	}
}

// Each of these rights is enough to remove or to change evidence. The administrator has them all.
func TestPreflightReportsEveryRightToRemove(t *testing.T) {
	d, _ := open(t)
	found, err := d.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, right := range []string{
		"ALTER UPDATE", "ALTER DELETE", "TRUNCATE", "DROP TABLE", "ALTER TTL", "ALTER SETTINGS", "ALTER MODIFY COLUMN",
		"ALTER CLEAR COLUMN", "ALTER DROP COLUMN", "ALTER RENAME COLUMN", "ALTER MOVE PARTITION", "ALTER FETCH PARTITION",
	} {
		if !slices.ContainsFunc(found.Weaknesses, func(w Weakness) bool {
			return w.Setting == "right to "+right && strings.Contains(w.Found, local("traces"))
		}) {
			t.Errorf("%s is not reported: %v", right, found)
		}
	}
}

// A right on some tables is found on exactly these: the reader may not read the bytes of dead letters.
func TestRightOnSomeTablesIsFound(t *testing.T) {
	asService(t) // migrates the database of the reader
	d := openDSN(t, enginetest.Engine(t).ReaderDSN())
	on, err := d.grantedOn(t.Context(), "SELECT", Tables)
	want := slices.DeleteFunc(slices.Clone(Tables), func(name string) bool { return name == "dead_letters" })
	if err != nil || !slices.Equal(on, want) {
		t.Errorf("the reader may read %q, want %q; error %v", on, want, err)
	}
	if on, err := d.grantedOn(t.Context(), "INSERT", Tables); err != nil || len(on) > 0 {
		t.Errorf("the reader may insert into %q, error %v", on, err)
	}
}

// The rights of a user are looked for one by one unless all of the grants are known to be harmless.
func TestUsersWithOnlyReadsAndInserts(t *testing.T) {
	e := enginetest.Engine(t)
	for dsn, want := range map[string]bool{e.ServiceDSN(): true, e.ReaderDSN(): true, e.AdminDSN(): false} {
		d := openDSN(t, dsn)
		if only, err := d.onlyReadsAndInserts(t.Context()); err != nil || only != want {
			t.Errorf("user %s: %v, want %v; error %v", one[string](t, d, "SELECT currentUser()"), only, want, err)
		}
	}
	for grant, want := range map[string]bool{
		"GRANT SELECT ON plumbline.* TO service":                                 true,
		"GRANT SELECT(a, b), INSERT ON plumbline.traces TO service":              true,
		"REVOKE SELECT(raw) ON plumbline.dead_letters FROM reader":               true,
		"GRANT SELECT, ALTER DELETE ON plumbline.* TO service":                   false,
		"GRANT SELECT ON plumbline.*, ALTER DELETE ON plumbline.* TO service":    false,
		"GRANT INSERT, TRUNCATE ON plumbline.traces TO service":                  false,
		"GRANT ALL ON *.* TO admin WITH GRANT OPTION":                            false,
		"GRANT operators TO service":                                             false,
		"GRANT SELECT ON plumbline.* TO service WITH GRANT OPTION":               false,
		"GRANT SELECT ON plumbline.traces TO service, ALTER ON plumbline.traces": false,
	} {
		if got := readOrInsert.MatchString(grant); got != want {
			t.Errorf("%s: %v, want %v", grant, got, want)
		}
	}
}

func TestPreflightReportsEveryWeakness(t *testing.T) {
	if onShards {
		t.Skip("TestPreflightOfACluster does the same to the parts of the tables")
	}
	d, _ := open(t) // with the administrator's privileges
	exec(t, d, "ALTER TABLE bundles RESET SETTING fsync_after_insert")
	exec(t, d, "ALTER TABLE verdicts MODIFY SETTING fsync_part_directory = 0")
	exec(t, d, "ALTER TABLE messages RESET SETTING min_rows_to_fsync_after_merge")
	exec(t, d, "ALTER TABLE ledger MODIFY SETTING min_rows_to_fsync_after_merge = 1000") // smaller merges are not synced
	exec(t, d, "RENAME TABLE cards TO elsewhere")
	found, err := d.Inspect(t.Context())
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
			t.Errorf("traces is reported as weak: %v", found)
		}
	}
}
