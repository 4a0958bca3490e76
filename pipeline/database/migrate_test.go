package database

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/cenkalti/backoff/v4"

	"github.com/plumbline/plumbline/engine/enginetest"
)

func TestMigrateTwiceChangesNothing(t *testing.T) {
	dsn := enginetest.Database(t)
	if err := Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	d := openDSN(t, dsn)
	before := one[string](t, d, describe)
	if err := Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	if after := one[string](t, d, describe); after != before {
		t.Errorf("a second migration changed the tables:\n%s\n%s", before, after)
	}
}

// The databases of the other tests are copies of a migrated one, with identical tables.
func TestCopiedTablesAreTheMigrated(t *testing.T) {
	described := func(dsn string) string {
		d := openDSN(t, dsn)
		text := one[string](t, d, describe) + one[string](t, d, "SELECT toString(arraySort(groupArray((version_id, is_applied)))) FROM schema_migrations")
		return strings.ReplaceAll(text, one[string](t, d, "SELECT currentDatabase()")+".", "")
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
	const processes = 3
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

// A statement may meet a view that a concurrent run has just replaced, also by the view of an earlier migration: it
// has no such column then, and another attempt succeeds. An error in a statement itself is final.
func TestConcurrentRunsAreMetAgain(t *testing.T) {
	for code, again := range map[int32]bool{47: true, 57: true, 60: true, 62: false, 497: false} {
		err := Cluster{}.final(&clickhouse.Exception{Code: code})
		if _, permanent := errors.AsType[*backoff.PermanentError](err); permanent == again {
			t.Errorf("code %d: %v", code, err)
		}
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
	d := openDSN(t, enginetest.Database(t))
	err := d.Ready(t.Context())
	if err == nil || Classify(err) != Stop || !strings.Contains(err.Error(), "table traces is missing") {
		t.Errorf("ready on an empty database: %v", err)
	}
}

// idempotent matches the parts of a statement that make a second run change nothing.
var idempotent = regexp.MustCompile(`IF NOT EXISTS|CREATE OR REPLACE VIEW|\n    MODIFY COLUMN|MODIFY SETTING|DROP INDEX IF EXISTS`)

// timeToLive matches the clause by which ClickHouse removes rows.
var timeToLive = regexp.MustCompile(`\bTTL\b`)

// Every statement is idempotent, and only retention removes rows.
func TestMigrationsAreIdempotentAndAppendOnly(t *testing.T) {
	eachMigration(t, func(name, text string) {
		for _, statement := range statementsOf(text) {
			if !idempotent.MatchString(strings.ToUpper(statement)) {
				t.Errorf("%s: a statement is not idempotent: %s", name, statement)
			}
		}
		for _, word := range []string{"DELETE", "TRUNCATE", "DROP", "UPDATE "} {
			kept := strings.ReplaceAll(strings.ToUpper(text), "DROP INDEX IF EXISTS", "") // an index has no rows
			if strings.Contains(kept, word) {
				t.Errorf("%s contains %s: rows are only ever added", name, word)
			}
		}
		if len(timeToLive.FindAllString(strings.ToUpper(text), -1)) != strings.Count(text, "\nTTL retain_until\n") {
			t.Errorf("%s: something other than retain_until removes rows", name)
		}
	})
}

func eachMigration(t *testing.T, check func(name, text string)) {
	t.Helper()
	names, err := fs.Glob(Migrations(), "*.sql")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d migrations, error %v", len(names), err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(Migrations(), name)
		if err != nil {
			t.Fatal(err)
		}
		check(name, string(text))
	}
}

// A crash may happen between a statement and goose's record of its migration.
func TestEveryStatementRunsTwice(t *testing.T) {
	d, dsn := open(t)
	before := one[string](t, d, describe)
	eachMigration(t, func(_, text string) {
		for _, statement := range statements(t, dsn, text) {
			exec(t, d, statement)
		}
	})
	over := Cluster{}
	if onShards {
		over = onTestShards
	}
	if err := over.Migrate(t.Context(), dsn); err != nil { // it writes the comments of the views
		t.Fatal(err)
	}
	if after := one[string](t, d, describe); after != before {
		t.Errorf("the statements changed the tables when they ran again:\n%s\n%s", before, after)
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

// older creates the tables of commit aff5234, the last one with the old steps, as its migrations
// left them. The record says that the steps up to last ran.
func older(t *testing.T, last int) (*DB, string) {
	t.Helper()
	dsn := enginetest.Database(t)
	d := openDSN(t, dsn)
	text, err := os.ReadFile("testdata/aff5234.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range statementsOf(string(text)) {
		exec(t, d, statement)
	}
	for step := range last + 1 {
		exec(t, d, fmt.Sprintf("INSERT INTO %s (version_id, is_applied) VALUES (%d, 1)", versionTable, step))
	}
	return d, dsn
}

// A database of the old steps, with rows, becomes one of this version without a change of a row.
// Its tables and views are then those of a new database.
func TestDatabaseOfTheOldStepsIsTakenOver(t *testing.T) {
	d, dsn := older(t, lastOldStep)
	takesOver(t, d, dsn)
}

// The same holds for a database of migration 120, whose columns had few comments, and whose view
// session_summary was another.
func TestDatabaseOfMigration120IsTakenOver(t *testing.T) {
	d, dsn := older(t, lastOldStep)
	eachMigration(t, func(name, text string) {
		number, err := strconv.Atoi(name[:5])
		if err != nil {
			t.Fatal(err)
		}
		if number > 120 {
			return
		}
		if number == 120 { // the others change nothing
			for _, statement := range statementsOf(text) {
				exec(t, d, statement)
			}
		}
		exec(t, d, fmt.Sprintf("INSERT INTO %s (version_id, is_applied) VALUES (%d, 1)", versionTable, number))
	})
	takesOver(t, d, dsn)
}

// takesOver migrates a database with rows.
func takesOver(t *testing.T, d *DB, dsn string) {
	t.Helper()
	live, err := d.liveTables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tables := slices.DeleteFunc(slices.Clone(Tables), func(name string) bool { // later migrations make further ones
		_, exists := live[name]
		return !exists
	})
	for _, table := range tables {
		exec(t, d, "SYSTEM STOP MERGES "+table) // retain_until of a random row may have passed
		exec(t, d, "INSERT INTO "+table+" SELECT * FROM generateRandom("+
			"(SELECT arrayStringConcat(groupArray('`' || name || '` ' || type), ', ') FROM system.columns WHERE database = currentDatabase() AND table = '"+table+"' AND default_kind = ''), 1, 10, 3) LIMIT 5")
	}
	rows := "SELECT toString(arraySort(groupArray((table, cityHash64(hashes))))) FROM (" // the earlier columns: a migration may add some
	for i, table := range tables {
		if i > 0 {
			rows += " UNION ALL "
		}
		columns := one[string](t, d, "SELECT arrayStringConcat(groupArray('`' || name || '`'), ', ') FROM system.columns WHERE database = currentDatabase() AND table = '"+table+"' AND default_kind = ''")
		rows += "SELECT '" + table + "' AS table, arraySort(groupArray(cityHash64(" + columns + "))) AS hashes FROM " + table
	}
	rows += ")"
	before := one[string](t, d, rows)
	if err := Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	if after := one[string](t, d, rows); after != before {
		t.Errorf("the rows were\n%s\nand are\n%s", before, after)
	}
	const opened = "SELECT count() = 5 AND countIf(state = 'opened' AND revision = 1 AND opened_at = detection_timestamp AND closed_at IS NULL AND count = length(trace_ids)) = 5 FROM visible_drift_alerts"
	if !one[bool](t, d, opened) {
		t.Error("the earlier alerts are not open as they were raised")
	}
	states, err := MigrationStatus(t.Context(), dsn)
	if err != nil || len(states) == 0 || states[len(states)-1].AppliedAt.IsZero() {
		t.Errorf("%v, error %v", states, err)
	}
	made := openDSN(t, enginetest.Migrated(t, Migrate))
	want, got := definitions(t, made), definitions(t, d)
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s was made by the old steps as\n%s\nand is made as\n%s", name, got[name], want[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d tables and views, want %d", len(got), len(want))
	}
}

// definitions returns the definition of each table and view, without the name of its database.
// The settings of a table have the order in which they were set, so they are sorted.
func definitions(t *testing.T, d *DB) map[string]string {
	t.Helper()
	database, all := one[string](t, d, "SELECT currentDatabase()"), map[string]string{}
	for _, name := range one[[]string](t, d, "SELECT groupArray(name) FROM system.tables WHERE database = currentDatabase()") {
		text := one[string](t, d, "SELECT create_table_query FROM system.tables WHERE database = currentDatabase() AND name = '"+name+"'")
		text = strings.ReplaceAll(text, database+".", "")
		if head, settings, found := strings.Cut(text, " SETTINGS "); found && strings.HasPrefix(text, "CREATE TABLE") {
			settings, comment, _ := strings.Cut(settings, " COMMENT ")
			sorted := strings.Split(settings, ", ")
			slices.Sort(sorted)
			text = head + " SETTINGS " + strings.Join(sorted, ", ") + " COMMENT " + comment
		}
		all[name] = text
	}
	return all
}

// A database in which only some of the old steps ran is refused, and stays as it is. The error
// says what to do.
func TestHalfwayThroughTheOldStepsIsRefused(t *testing.T) {
	d, dsn := older(t, 60)
	before := one[string](t, d, describe)
	err := Migrate(t.Context(), dsn)
	if err == nil || !strings.Contains(err.Error(), "step 60 of 81") || !strings.Contains(err.Error(), "commit aff5234") || !strings.Contains(err.Error(), "plumbline replay") {
		t.Errorf("error %v", err)
	}
	if after := one[string](t, d, describe); after != before {
		t.Errorf("the tables were changed:\n%s\n%s", before, after)
	}
}
