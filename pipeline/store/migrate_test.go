package store

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/plumbline/plumbline/engine/enginetest"
)

func TestMigrateTwiceChangesNothing(t *testing.T) {
	dsn := enginetest.Database(t)
	if err := Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	s := openDSN(t, dsn)
	before := one[string](t, s, describe)
	if err := Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	if after := one[string](t, s, describe); after != before {
		t.Errorf("a second migration changed the tables:\n%s\n%s", before, after)
	}
}

// The databases of the other tests are copies of a migrated one, with identical tables.
func TestCopiedTablesAreTheMigrated(t *testing.T) {
	described := func(dsn string) string {
		s := openDSN(t, dsn)
		text := one[string](t, s, describe) + one[string](t, s, "SELECT toString(arraySort(groupArray((version_id, is_applied)))) FROM schema_migrations")
		return strings.ReplaceAll(text, one[string](t, s, "SELECT currentDatabase()")+".", "")
	}
	migrated := enginetest.Database(t)
	if err := Migrate(t.Context(), migrated); err != nil {
		t.Fatal(err)
	}
	want := described(migrated)
	for range 2 {
		if got := described(enginetest.Migrated(t, Migrate)); got != want {
			t.Errorf("copied:\n%s\nmigrated:\n%s", got, want)
		}
	}
}

const describe = "SELECT arrayStringConcat(arraySort(groupArray(create_table_query)), '\n') FROM system.tables WHERE database = currentDatabase()"

// A service may not create tables. It needs no such privilege if the tables exist.
func TestMigrateAsAService(t *testing.T) {
	e := enginetest.Engine(t)
	if err := Migrate(t.Context(), e.AdminDSN()); err != nil {
		t.Fatal(err)
	}
	if err := Migrate(t.Context(), e.ServiceDSN()); err != nil {
		t.Error(err)
	}
}

func TestMigrateConcurrently(t *testing.T) {
	dsn := enginetest.Database(t)
	const processes = 4
	errs := make([]error, processes)
	var wg sync.WaitGroup
	for i := range processes {
		wg.Go(func() { errs[i] = Migrate(t.Context(), dsn) })
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			t.Errorf("process %d: %v", i, err)
		}
	}
	states, err := MigrationStatus(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range states {
		if st.AppliedAt.IsZero() {
			t.Errorf("%s is not applied", st.Name)
		}
	}
	if err := openDSN(t, dsn).Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestMigrateStatusBeforeAny(t *testing.T) {
	states, err := MigrationStatus(t.Context(), enginetest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(states) == 0 {
		t.Fatal("no migrations")
	}
	for _, st := range states {
		if !st.AppliedAt.IsZero() {
			t.Errorf("%s is applied to an empty database", st.Name)
		}
	}
}

func TestReadyNamesMissingTables(t *testing.T) {
	s := openDSN(t, enginetest.Database(t))
	err := s.Ready(t.Context())
	if err == nil || Classify(err) != Stop || !strings.Contains(err.Error(), "table traces is missing") {
		t.Errorf("ready on an empty database: %v", err)
	}
}

// idempotent matches the parts of a statement that make a second run change nothing.
var idempotent = regexp.MustCompile(`IF NOT EXISTS|CREATE OR REPLACE VIEW|\n    MODIFY COLUMN|MODIFY SETTING`)

// timeToLive matches the clause by which ClickHouse removes rows.
var timeToLive = regexp.MustCompile(`\bTTL\b`)

// Every statement is idempotent, and only retention removes rows.
func TestMigrationsAreIdempotentAndAppendOnly(t *testing.T) {
	eachSQL(t, func(name, text string) {
		statement := strings.ToUpper(text)
		if strings.HasPrefix(name, "sql/migrations/") {
			if !idempotent.MatchString(statement) {
				t.Errorf("%s is not idempotent", name)
			}
			if n := strings.Count(statement, ";\n"); n != max(1, strings.Count(statement, "MODIFY SETTING")) {
				t.Errorf("%s: want one statement a step, but for settings, each of which may be set again", name)
			}
		}
		for _, word := range []string{"DELETE", "TRUNCATE", "DROP", "UPDATE "} {
			if strings.Contains(statement, word) {
				t.Errorf("%s contains %s: rows are only ever added", name, word)
			}
		}
		if len(timeToLive.FindAllString(statement, -1)) != strings.Count(text, "\nTTL retain_until\n") {
			t.Errorf("%s: rows go by something else than retain_until", name)
		}
	})
}

func eachSQL(t *testing.T, check func(name, text string)) {
	t.Helper()
	for _, files := range []fs.FS{migrationSQL, querySQL} {
		err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := fs.ReadFile(files, path)
			check(path, string(b))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A crash may happen between a statement and goose's record of it.
func TestEveryStatementRunsTwice(t *testing.T) {
	s, dsn := open(t)
	before := one[string](t, s, describe)
	eachSQL(t, func(name, text string) {
		if strings.HasPrefix(name, "sql/migrations/") {
			for _, statement := range statements(t, dsn, text) {
				exec(t, s, statement)
			}
		}
	})
	if after := one[string](t, s, describe); after != before {
		t.Errorf("applied again, the statements changed the tables:\n%s\n%s", before, after)
	}
}

// statements returns the statements that a migration sends to the server.
func statements(t testing.TB, dsn, text string) []string {
	t.Helper()
	if !onShards {
		return statementsOf(text)
	}
	made, err := clusterLayout(t, dsn).statements(text)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// Verdicts that were stored before revocations were known keep their position and id.
func TestElderVerdictsStay(t *testing.T) {
	s, _ := open(t)
	elder := func(file string) string {
		text, err := fs.ReadFile(migrationSQL, "sql/migrations/"+file)
		if err != nil {
			t.Fatal(err)
		}
		renamed := strings.Replace(string(text), "TABLE IF NOT EXISTS verdicts", "TABLE IF NOT EXISTS elder", 1)
		return strings.TrimSuffix(strings.TrimSpace(strings.Replace(renamed, "TABLE verdicts", "TABLE elder", 1)), ";")
	}
	exec(t, s, elder("00002_verdicts.sql"))
	exec(t, s, "INSERT INTO elder (event_hour, tenant, trace_id, received_at, verified_at, retain_until) "+
		"SELECT 1, 'default', toString(number), now64(9), now64(9), now() + 1000 FROM numbers(3)")
	ids := "SELECT arraySort(groupArray(verdict_id)) FROM elder FINAL"
	before := one[[]string](t, s, ids)
	exec(t, s, elder("00025_verdicts_by_revocation.sql"))
	if after := one[[]string](t, s, ids); len(after) != 3 || !slices.Equal(after, before) {
		t.Errorf("ids were\n%v\nand are\n%v", before, after)
	}
	if !one[bool](t, s, "SELECT max(toUnixTimestamp64Nano(revoked_at)) = 0 FROM elder") {
		t.Error("an elder verdict has a revocation")
	}
}

// Verdicts that were stored under the previous definition get the right id from the migration.
func TestStoredVerdictsGetTheirID(t *testing.T) {
	s, dsn := open(t)
	migrate := func(file string) {
		text, err := fs.ReadFile(migrationSQL, "sql/migrations/"+file)
		if err != nil {
			t.Fatal(err)
		}
		for _, server := range servers(t, dsn) {
			for _, statement := range statements(t, dsn, string(text)) {
				exec(t, server, statement)
			}
		}
	}
	migrate("00025_verdicts_by_revocation.sql")
	trace := numbered(t, 1)
	clear(trace.Digest[31:])
	v := wholeVerdict(trace)
	b := s.NewTraceBatch()
	b.Add(trace, meta(trace, 1), v)
	insert(t, s, b)
	want := VerdictID(&v.Metadata).String()
	if got := one[string](t, s, "SELECT verdict_id FROM verdicts"); got == want {
		t.Errorf("the definition before gives %s too", got)
	}
	migrate("00060_verdict_ids_of_whole_digests.sql")
	for _, table := range []string{"verdicts", "current_verdicts"} {
		if got := one[string](t, s, "SELECT verdict_id FROM "+table); got != want {
			t.Errorf("verdict_id of %s is %s, want %s", table, got, want)
		}
	}
}

// A FixedString is written with hex: as text it would lose the NUL bytes at its end.
func TestNoFixedStringIsTakenForText(t *testing.T) {
	before := []string{"00002_verdicts.sql", "00025_verdicts_by_revocation.sql"} // 00060 corrects these two
	cut := regexp.MustCompile(`(?i)(toString\(|CAST\()\s*(\w+\.)?(\w*digest|sha256|\w+_id)\b|(\w*digest|sha256)\s*::`)
	eachSQL(t, func(name, text string) {
		if found := cut.FindString(text); found != "" && !slices.Contains(before, path.Base(name)) {
			t.Errorf("%s: %s… cuts NUL bytes off the end of a FixedString", name, found)
		}
	})
}
