package store

import (
	"context"
	"errors"
	"fmt"
)

func (s *Store) tablesExist(ctx context.Context) error {
	ctx, cancel := s.readContext(ctx)
	defer cancel()
	rows, err := s.conn.Query(ctx, "SELECT name FROM system.tables WHERE database = currentDatabase()")
	if err != nil {
		return fmt.Errorf("store: list tables: %w", err)
	}
	defer rows.Close()
	missing := map[string]bool{}
	for _, t := range tables {
		missing[t] = true
	}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return fmt.Errorf("store: list tables: %w", err)
		}
		delete(missing, name)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("store: list tables: %w", err)
	}
	var faults []error
	for _, t := range tables {
		if missing[t] {
			faults = append(faults, fmt.Errorf("table %s is missing: %w", t, errDeployment))
		}
	}
	return errors.Join(faults...)
}

// tables are ours, in order of the migrations.
var tables = []string{
	"traces", "verdicts", "drift_points", "drift_alerts", "drift_state",
	"sessions", "bundles", "seal_runs", "dead_letters", "cards",
}
