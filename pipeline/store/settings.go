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
}

// readPins are sent with every reading query. Copies of a row lie in two
// partitions where a publisher repeated itself over the end of a month.
var readPins = clickhouse.Settings{
	"do_not_merge_across_partitions_select_final": 0,
	"use_skip_indexes_if_final":                   1,    // copies share every indexed value
	"max_block_size":                              2048, // the driver holds a block at a time: records are large
}

// insertContext bounds one attempt to insert, in the server too (the driver sends
// the deadline along), and pins its settings.
func (s *Store) insertContext(ctx context.Context, queryID string, a *attempt) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.InsertTimeout)
	options := []clickhouse.QueryOption{clickhouse.WithSettings(s.pinned(insertPins)), clickhouse.WithProfileEvents(a.note)}
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
