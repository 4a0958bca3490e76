package store

import (
	"context"
	"maps"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// insertPins are sent with every INSERT: what a server, a user's profile or a
// table might say otherwise would break the promise that an answer means "on disk".
var insertPins = clickhouse.Settings{
	"async_insert":                             0, // the default since 26.3 is to queue
	"wait_for_async_insert":                    1, // where a table insists on the queue
	"insert_deduplicate":                       0, // identical batches are told apart by their rows' keys
	"optimize_on_insert":                       0, // FINAL collapses copies; doing it on insert costs four times the insert
	"throw_on_max_partitions_per_insert_block": 1,
	"insert_distributed_sync":                  1, // through a Distributed table: answered by the shard
	"input_format_null_as_default":             0,
	"insert_null_as_default":                   0,
	"min_insert_block_size_rows":               0, // one batch, one block, one part a month
	"min_insert_block_size_bytes":              0,
	"materialized_views_ignore_errors":         0,
	"send_profile_events":                      1, // see attempt

	// Of a cluster: answered when most replicas of the shard have the rows, by the
	// replica that is also read.
	"insert_quorum":            "auto",
	"insert_quorum_parallel":   1,
	"load_balancing":           "in_order",
	"prefer_localhost_replica": 0,
}

// serialTable is inserted into one insert after the other, because it is read by
// select_sequential_consistency (drift_states.sql): drift does not go back to messages
// that a state names, so it must not go on from an older one.
const serialTable = "drift_state"

// readPins are sent with every reading query. Copies of a row lie in two
// partitions where a publisher repeated itself over the end of a month.
var readPins = clickhouse.Settings{
	"do_not_merge_across_partitions_select_final": 0,
	"use_skip_indexes_if_final":                   1,    // copies share every indexed value
	"max_block_size":                              2048, // the driver holds a block at a time: records are large

	// Of a cluster: all shards or an error, each from the replica that is written to,
	// unless that is far behind; a subquery is about all shards, too.
	"skip_unavailable_shards":                            0,
	"load_balancing":                                     "in_order",
	"prefer_localhost_replica":                           0,
	"max_replica_delay_for_distributed_queries":          5,
	"fallback_to_stale_replicas_for_distributed_queries": 0,
	"distributed_product_mode":                           "global",
}

// insertContext bounds one attempt to insert, in the server too (the driver sends
// the deadline along), and pins its settings. Without an answer of the replicas it ends
// before the attempt does: the error then says so.
func (s *Store) insertContext(ctx context.Context, table, queryID string, a *attempt) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.InsertTimeout)
	settings := s.pinned(insertPins)
	settings["insert_quorum_timeout"] = (s.cfg.InsertTimeout / 2).Milliseconds()
	if table == serialTable {
		settings["insert_quorum_parallel"] = 0
	}
	options := []clickhouse.QueryOption{clickhouse.WithSettings(settings), clickhouse.WithProfileEvents(a.note)}
	if queryID != "" {
		options = append(options, clickhouse.WithQueryID(queryID))
	}
	return clickhouse.Context(ctx, options...), cancel
}

// readContext bounds one query and pins its settings. The caller cancels once
// it has read the rows.
func (s *Store) readContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.QueryTimeout)
	return clickhouse.Context(ctx, clickhouse.WithSettings(s.pinned(readPins))), cancel
}

// pinned returns a copy of pins with a comment that says who asks.
func (s *Store) pinned(pins clickhouse.Settings) clickhouse.Settings {
	all := maps.Clone(pins)
	all["log_comment"] = strings.Join([]string{"plumbline", s.cfg.Stage, s.cfg.Tenant}, "/")
	return all
}
