package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// tables are the tables of this package, in order of the migrations.
var tables = []string{
	"traces", "verdicts", "drift_points", "drift_alerts", "drift_state", "drift_baselines",
	"sessions", "session_verdicts", "bundles", "bundle_copies", "seal_runs", "ledger", "dead_letters", "dead_letter_marks",
	"cards", "revocations",
	"coherence_results", "task_results", "messages",
}

// durableSettings are part of the definition of each table. With them an acknowledged INSERT
// survives a loss of power, and so does the part into which its rows are merged.
var durableSettings = []string{"fsync_after_insert = 1", "fsync_part_directory = 1", "min_rows_to_fsync_after_merge = 1"}

// removers are the privileges on evidence that no service may have.
var removers = []string{"ALTER UPDATE", "ALTER DELETE", "TRUNCATE", "DROP TABLE"}

// liveTable describes a table as ClickHouse reports it.
type liveTable struct {
	Name   string `ch:"name"`
	Engine string `ch:"engine_full"`
	Policy string `ch:"storage_policy"`
}

// setting returns the value of a setting of the table, or "" if its definition has none.
func (t *liveTable) setting(name string) string {
	_, settings, _ := strings.Cut(t.Engine, " SETTINGS ")
	for setting := range strings.SplitSeq(settings, ", ") {
		if value, is := strings.CutPrefix(setting, name+" = "); is {
			return value
		}
	}
	return ""
}

// Weakness is a setting of the database that is below the durability requirement.
type Weakness struct {
	Object  string // "table traces", "the user"
	Setting string // as ClickHouse names it
	Found   string
	Wanted  string
	Why     string
	Remedy  string // what to do
}

func (w Weakness) Error() string {
	return fmt.Sprintf("%s: %s is %s, want %s (%s): %s", w.Object, w.Setting, w.Found, w.Wanted, w.Why, w.Remedy)
}

// Inspection is the result of Inspect.
type Inspection struct {
	Weaknesses []Weakness
	Unknown    []string // servers of a cluster that could not be inspected, and why
}

// Inspect checks whether the database meets the durability requirement (docs/GUARANTEES.md). It
// changes nothing. It checks that every table exists and fsyncs its inserts on a disk known to
// honour fsync, and that this user cannot remove or change a row. In a cluster it checks every
// server.
func (s *Store) Inspect(ctx context.Context) (Inspection, error) {
	if s.cfg.Cluster != "" {
		return s.inspectCluster(ctx)
	}
	live, err := s.liveTables(ctx)
	if err != nil {
		return Inspection{}, err
	}
	var found []Weakness
	for _, name := range tables {
		found = append(found, live.weaknesses(name)...)
	}
	rights, err := s.rightsToRemove(ctx, live)
	return Inspection{Weaknesses: append(found, rights...)}, err
}

// tablesExist returns an error that lists the missing tables.
func (s *Store) tablesExist(ctx context.Context) error {
	live, err := s.liveTables(ctx)
	if err != nil {
		return err
	}
	var faults []error
	for _, name := range tables {
		if _, ok := live[name]; !ok {
			faults = append(faults, missingTable(name))
		}
	}
	return errors.Join(faults...)
}

func missingTable(name string) error {
	return fmt.Errorf("table %s is missing: %w", name, errDeployment)
}

// liveTables are the tables of a database by their names.
type liveTables map[string]liveTable

func (s *Store) liveTables(ctx context.Context) (liveTables, error) {
	live := liveTables{}
	for t, err := range eachRow[liveTable](ctx, s, queryTables) {
		if err != nil {
			return nil, fmt.Errorf("store: list the tables: %w", err)
		}
		live[t.Name] = *t
	}
	return live, nil
}

// ours returns the names of our tables, including those of the shards' parts.
func (l liveTables) ours() (names []string) {
	for _, table := range tables {
		for _, name := range []string{table, table + localSuffix} {
			if _, there := l[name]; there {
				names = append(names, name)
			}
		}
	}
	return names
}

// weaknesses returns the weaknesses of a table that holds rows.
func (l liveTables) weaknesses(name string) []Weakness {
	object := "table " + name
	t, there := l[name]
	if !there {
		return []Weakness{{Object: object, Setting: "existence", Found: "missing", Wanted: "present",
			Why: "what belongs there is stored nowhere", Remedy: errDeployment.Error()}}
	}
	if strings.HasPrefix(t.Engine, "Distributed(") {
		return []Weakness{{Object: object, Setting: "engine", Found: t.Engine, Wanted: "ReplacingMergeTree",
			Why: "the servers of its cluster are not checked", Remedy: "name the cluster with --clickhouse-cluster"}}
	}
	var found []Weakness
	wanted := durableSettings
	if strings.HasPrefix(t.Engine, "Replicated") {
		wanted = append(slices.Clone(wanted), fetchSetting)
	}
	for _, setting := range wanted {
		if name, value, _ := strings.Cut(setting, " = "); t.setting(name) != value {
			found = append(found, Weakness{Object: object, Setting: name, Found: cmp.Or(t.setting(name), "not set"), Wanted: value,
				Why: "rows may not survive the loss of power", Remedy: "ALTER TABLE " + t.Name + " MODIFY SETTING " + setting})
		}
	}
	if t.Policy != "default" {
		found = append(found, Weakness{Object: object, Setting: "storage_policy", Found: t.Policy, Wanted: "default",
			Why: "its disks are not known to honour fsync", Remedy: "use local disks"})
	}
	if !strings.Contains(t.Engine, "ReplacingMergeTree") {
		engine, _, _ := strings.Cut(t.Engine, " ")
		found = append(found, Weakness{Object: object, Setting: "engine", Found: engine, Wanted: "ReplacingMergeTree",
			Why: "a record that is delivered twice would show twice", Remedy: "let plumbline migrate make the table"})
	}
	return found
}

// rightsToRemove returns the privileges on tables that this user should not have.
func (s *Store) rightsToRemove(ctx context.Context, live liveTables) ([]Weakness, error) {
	var found []Weakness
	for _, right := range removers {
		var on []string
		for _, table := range live.ours() {
			granted, err := s.granted(ctx, right, table)
			if err != nil {
				return nil, err
			}
			if granted {
				on = append(on, table)
			}
		}
		if len(on) > 0 {
			found = append(found, Weakness{Object: "the user", Setting: "right to " + right, Found: "granted on " + strings.Join(on, ", "),
				Wanted: "granted on none", Why: "evidence is append-only", Remedy: "connect as a user with SELECT and INSERT alone"})
		}
	}
	return found, nil
}

// granted reports whether this user has a privilege on a table, as far as the server can answer.
// Servers before 24.9 cannot.
func (s *Store) granted(ctx context.Context, right, table string) (bool, error) {
	ctx, cancel := s.readContext(ctx)
	defer cancel()
	var granted uint8
	err := s.conn.QueryRow(ctx, "CHECK GRANT "+right+" ON "+table).Scan(&granted)
	if exception, ok := errors.AsType[*clickhouse.Exception](err); ok && exception.Code == codeSyntaxError {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("store: check the rights on %s: %w", table, err)
	}
	return granted != 0, nil
}

// codeSyntaxError is ClickHouse's error code for a statement that it does not know.
const codeSyntaxError = 62
