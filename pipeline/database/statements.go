package database

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// insertPins are sent with every INSERT. A server, a user's profile or a table may have other
// values, with which an answer would not mean "on disk".
var insertPins = clickhouse.Settings{
	"async_insert":                             0, // since 26.3 the default is to queue
	"wait_for_async_insert":                    1, // for a table that always queues
	"insert_deduplicate":                       0, // the keys of rows distinguish identical batches
	"optimize_on_insert":                       0, // FINAL collapses copies; doing it here costs four times the insert
	"throw_on_max_partitions_per_insert_block": 1,
	"insert_distributed_sync":                  1, // through a Distributed table: the shard has answered
	"input_format_null_as_default":             0,
	"insert_null_as_default":                   0,
	"min_insert_block_size_rows":               0, // one batch, one block, one part for each month
	"min_insert_block_size_bytes":              0,
	"materialized_views_ignore_errors":         0,
	"send_profile_events":                      1, // for Insert

	// For a cluster: the answer comes when most replicas of the shard have the rows, and from the
	// replica that reads use.
	"insert_quorum":            "auto",
	"insert_quorum_parallel":   1,
	"load_balancing":           "in_order",
	"prefer_localhost_replica": 0,
}

// serialTables receive one insert after the other, because they are read with
// select_sequential_consistency: drift_state (drift_states.sql), because drift does not go back to
// messages that a state covers, so it must not continue from an older state; cards and
// card_positions (card_position.sql, registered_cards.sql), because the cards up to the position are read
// from the table alone.
var serialTables = []string{"drift_state", "cards", "card_positions"}

// granuleRows is how many rows one entry of a skip index is about: index_granularity of all tables but one
// (refined). The indexes of a smaller part say only whether all of it can be skipped, and to build them is a
// third of the cost of its insert. So the merge that makes it larger builds them.
const granuleRows = 8192

// readPins are sent with every reading query. A row has copies in two partitions if a publisher
// repeated a message across the end of a month.
var readPins = clickhouse.Settings{
	"do_not_merge_across_partitions_select_final": 0,
	"use_skip_indexes_if_final":                   1,    // copies have the same value in every indexed column
	"max_block_size":                              2048, // the driver holds one block: records are large

	// For a cluster: read all shards or fail; read each from the replica that is written to,
	// unless it is far behind; a subquery covers all shards too.
	"skip_unavailable_shards":                            0,
	"load_balancing":                                     "in_order",
	"prefer_localhost_replica":                           0,
	"max_replica_delay_for_distributed_queries":          5,
	"fallback_to_stale_replicas_for_distributed_queries": 0,
	"distributed_product_mode":                           "global",
}

// ReadContext limits the time of one query and pins its settings. The caller must cancel after
// reading the rows.
func (d *DB) ReadContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.QueryTimeout)
	settings := d.pinned(readPins)
	d.cfg.Limits.apply(settings)
	return clickhouse.Context(ctx, clickhouse.WithSettings(settings)), cancel
}

// FinalContext is ReadContext for a statement that is not ours. It reads tables through FINAL,
// which hides duplicates.
func (d *DB) FinalContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.QueryTimeout)
	settings := d.pinned(readPins)
	settings["final"] = 1
	return clickhouse.Context(ctx, clickhouse.WithSettings(settings)), cancel
}

// pinned returns a copy of pins with a comment that names the caller.
func (d *DB) pinned(pins clickhouse.Settings) clickhouse.Settings {
	all := maps.Clone(pins)
	all["log_comment"] = strings.Join([]string{"plumbline", d.cfg.Stage, d.cfg.Tenant}, "/")
	return all
}

// ErrUnwritten reports that ClickHouse acknowledged an INSERT although it could not write all of
// it to its disk. The INSERT must be retried.
var ErrUnwritten = errors.New("ClickHouse acknowledged rows that it could not write to its disk, which may be full")

// Insert is one attempt at an INSERT, and the failed writes that the server counts meanwhile.
//
// A ClickHouse server answers an INSERT whose write failed with an error. The embedded library
// (26.7) ignores the failure and commits a part whose files are empty. Only this count shows the
// failure. Package engine then restarts the library, which detaches such parts.
type Insert struct {
	driver.Batch
	ctx    context.Context // of the attempt
	cancel context.CancelFunc
	failed int64 // number of failed writes
}

// Insert begins an INSERT of so many rows with pinned settings. queryID may be empty. The caller must call Close.
func (d *DB) Insert(ctx context.Context, table string, rows int, queryID, statement string) (*Insert, error) {
	return d.begin(ctx, d.Conn, table, rows, queryID, statement)
}

// begin begins an INSERT on one of the connections of conn.
func (d *DB) begin(ctx context.Context, conn driver.Conn, table string, rows int, queryID, statement string) (*Insert, error) {
	i := new(Insert)
	i.ctx, i.cancel = d.insertContext(ctx, table, rows, queryID, i.count)
	var err error
	if i.Batch, err = conn.PrepareBatch(i.ctx, statement); err != nil {
		i.cancel()
		return nil, err
	}
	return i, nil
}

// insertContext limits the time of one attempt to insert and pins its settings. The limit applies
// in the server too, because the driver sends the deadline. The wait for the quorum of replicas
// ends before the attempt does, and the error then names the quorum.
func (d *DB) insertContext(ctx context.Context, table string, rows int, queryID string, count func([]clickhouse.ProfileEvent)) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.InsertTimeout)
	settings := d.pinned(insertPins)
	settings["insert_quorum_timeout"] = (d.cfg.InsertTimeout / 2).Milliseconds()
	if slices.Contains(serialTables, table) {
		settings["insert_quorum_parallel"] = 0
	}
	if rows <= granuleRows && table != refined {
		settings["materialize_skip_indexes_on_insert"] = 0
	}
	options := []clickhouse.QueryOption{clickhouse.WithSettings(settings), clickhouse.WithProfileEvents(count)}
	if queryID != "" {
		options = append(options, clickhouse.WithQueryID(queryID))
	}
	return clickhouse.Context(ctx, options...), cancel
}

// count adds the writes that failed since the last call.
func (i *Insert) count(events []clickhouse.ProfileEvent) {
	for _, event := range events {
		if event.Name == "WriteBufferFromFileDescriptorWriteFailed" {
			i.failed += event.Value
		}
	}
}

// Send sends the rows. It returns nil only if all of them were written.
func (i *Insert) Send() error {
	if err := i.Batch.Send(); err != nil {
		return err
	}
	if i.failed > 0 {
		return ErrUnwritten
	}
	return nil
}

// Close releases the connection. After Send it does nothing else.
func (i *Insert) Close() error {
	defer i.cancel()
	return i.Batch.Close()
}
