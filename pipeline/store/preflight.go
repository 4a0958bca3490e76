package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// tables are ours, in order of the migrations.
var tables = []string{
	"traces", "verdicts", "drift_points", "drift_alerts", "drift_state", "drift_baselines",
	"sessions", "session_verdicts", "bundles", "bundle_copies", "seal_runs", "ledger", "dead_letters", "cards", "revocations",
	"coherence_results", "messages",
}

// durableSettings stand in the definition of each of our tables: with them an
// answered INSERT survives the loss of power.
var durableSettings = []string{"fsync_after_insert = 1", "fsync_part_directory = 1"}

// removers are the rights that no service may have on evidence.
var removers = []string{"ALTER UPDATE", "ALTER DELETE", "TRUNCATE", "DROP TABLE"}

// liveTable is what ClickHouse says of a table.
type liveTable struct {
	Name   string `ch:"name"`
	Engine string `ch:"engine_full"`
	Policy string `ch:"storage_policy"`
}

// Preflight checks what the promise rests on: every table is there, fsyncs its
// inserts on a disk known to honour that, and this user cannot remove or change
// a row. It reports every fault, each with what to do.
func (s *Store) Preflight(ctx context.Context) error {
	live, err := s.liveTables(ctx)
	if err != nil {
		return err
	}
	var faults []error
	for _, name := range tables {
		table, ok := live[name]
		if !ok {
			faults = append(faults, missingTable(name))
			continue
		}
		faults = append(faults, table.weaknesses()...)
		rights, err := s.rightsToRemove(ctx, name)
		if err != nil {
			return err
		}
		faults = append(faults, rights...)
	}
	return errors.Join(faults...)
}

// tablesExist reports the tables that are missing.
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

func (s *Store) liveTables(ctx context.Context) (map[string]liveTable, error) {
	live := map[string]liveTable{}
	for t, err := range eachRow[liveTable](ctx, s, queryTables) {
		if err != nil {
			return nil, fmt.Errorf("store: list the tables: %w", err)
		}
		live[t.Name] = *t
	}
	return live, nil
}

func (t liveTable) weaknesses() []error {
	var faults []error
	for _, setting := range durableSettings {
		if !strings.Contains(t.Engine, setting) {
			faults = append(faults, fmt.Errorf("table %s lacks %s: an answered insert may not survive the loss of power; ALTER TABLE %s MODIFY SETTING %s",
				t.Name, setting, t.Name, setting))
		}
	}
	if t.Policy != "default" {
		faults = append(faults, fmt.Errorf("table %s lies on storage policy %q, whose disks are not known to honour fsync; use local disks", t.Name, t.Policy))
	}
	if !strings.Contains(t.Engine, "ReplacingMergeTree") {
		faults = append(faults, fmt.Errorf("table %s is %.40s: copies would show; want ReplacingMergeTree", t.Name, t.Engine))
	}
	return faults
}

// rightsToRemove lists the rights that this user should not have.
func (s *Store) rightsToRemove(ctx context.Context, table string) ([]error, error) {
	ctx, cancel := s.readContext(ctx)
	defer cancel()
	var faults []error
	for _, right := range removers {
		var granted uint8
		err := s.conn.QueryRow(ctx, "CHECK GRANT "+right+" ON "+table).Scan(&granted)
		if exception, ok := errors.AsType[*clickhouse.Exception](err); ok && exception.Code == codeSyntaxError {
			return nil, nil // servers before 24.9 cannot tell
		}
		if err != nil {
			return nil, fmt.Errorf("store: check the rights on %s: %w", table, err)
		}
		if granted != 0 {
			faults = append(faults, fmt.Errorf("this user may %s %s: evidence is append-only; connect as a user with SELECT and INSERT alone", right, table))
		}
	}
	return faults, nil
}

// codeSyntaxError is ClickHouse's answer to a statement that it does not know.
const codeSyntaxError = 62
