package database

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Table drift_state is read by scattered keys, so its index has a mark for every few rows. A table that was made
// before this has one for some thousands, and ClickHouse cannot change that of a table: its rows are copied
// into a new one, which takes its place. On a cluster such a table stays as it is: reading it is slower, and right.
const (
	refined        = "drift_state"
	refinedNew     = "drift_state_refined"
	refinedOld     = "drift_state_coarse"
	refinedSetting = "index_granularity = 16"
	refinedFile    = "00106_drift_state.sql"
)

// refine replaces a table drift_state with few marks. It may be interrupted after each statement and run
// again, also concurrently: a row that is copied twice is one row, because its version is the same. Drift
// should not run: a state that it inserts during the whole copy may be lost.
func (l layout) refine(ctx context.Context, dsn string) error {
	if l.Name != "" {
		return nil
	}
	options, err := parseDSN(dsn)
	if err != nil {
		return err
	}
	conn, err := clickhouse.Open(options)
	if err != nil {
		return err
	}
	if err = refineOn(ctx, conn); err != nil {
		err = fmt.Errorf("give table %s more marks: %w", refined, err)
	}
	return errors.Join(err, conn.Close())
}

func refineOn(ctx context.Context, conn driver.Conn) error {
	engines, err := enginesOf(ctx, conn)
	if err != nil {
		return err
	}
	if engine, present := engines[refined]; present && !strings.Contains(engine, refinedSetting) {
		if err := copyRefined(ctx, conn); err != nil {
			return err
		}
		if err := conn.Exec(ctx, "RENAME TABLE "+refined+" TO "+refinedOld); err != nil {
			return err
		}
		if engines, err = enginesOf(ctx, conn); err != nil {
			return err
		}
	}
	_, present := engines[refined]
	_, made := engines[refinedNew]
	switch {
	case made && !present:
		err = conn.Exec(ctx, "RENAME TABLE "+refinedNew+" TO "+refined)
	case made: // by a concurrent run that came too late
		err = conn.Exec(ctx, "DROP TABLE IF EXISTS "+refinedNew)
	}
	if err != nil {
		return err
	}
	if _, left := engines[refinedOld]; !left {
		return nil
	}
	if err := conn.Exec(ctx, copyRows(refinedOld, refined)); err != nil { // what was inserted after the first copy
		return err
	}
	return conn.Exec(ctx, "DROP TABLE IF EXISTS "+refinedOld)
}

// copyRefined makes the new table, with the rows and the constraints of the old one.
func copyRefined(ctx context.Context, conn driver.Conn) error {
	definition, err := fs.ReadFile(Migrations(), refinedFile)
	if err != nil {
		return err
	}
	_, engine, _ := strings.Cut(statementsOf(string(definition))[0], "\nENGINE ")
	if err := conn.Exec(ctx, "CREATE TABLE IF NOT EXISTS "+refinedNew+" AS "+refined+"\nENGINE "+engine); err != nil {
		return err
	}
	return conn.Exec(ctx, copyRows(refined, refinedNew))
}

// copyRows returns the statement that copies the rows that the other table lacks. It bounds its memory: a row may
// have some KB.
func copyRows(from, to string) string {
	const key = "sipHash128(tenant, stream_created, stream_partition, agent_id, card_id, version)"
	return "INSERT INTO " + to + " SELECT * FROM " + from + " WHERE " + key + " NOT IN (SELECT " + key + " FROM " + to + ")" +
		" SETTINGS max_threads = 1, max_insert_threads = 1, max_block_size = 4096, min_insert_block_size_rows = 0, min_insert_block_size_bytes = 67108864"
}

// enginesOf returns the engines of those of the three tables that exist.
func enginesOf(ctx context.Context, conn driver.Conn) (engines map[string]string, err error) {
	rows, err := conn.Query(ctx, "SELECT name, engine_full FROM system.tables WHERE database = currentDatabase() AND name IN {names:Array(String)}",
		clickhouse.Named("names", []string{refined, refinedNew, refinedOld}))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	engines = map[string]string{}
	for rows.Next() {
		var name, engine string
		if err := rows.Scan(&name, &engine); err != nil {
			return nil, err
		}
		engines[name] = engine
	}
	return engines, rows.Err()
}
