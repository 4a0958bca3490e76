// Package store keeps traces, verdicts, drift, sessions, bundles, cards and dead
// letters in ClickHouse. clickhouse-go lives only here, and so does SQL
// (sql/migrations, sql/queries).
//
// It owns the tables and views, how rows are written so that none is lost or
// seen twice, and how errors are classed: retry, split, stop. It judges nothing,
// seals nothing and does not know the broker: what a message says arrives as
// values (Meta).
//
// Invariants: rows are inserted, never altered or deleted, retention is the only
// remover; every row carries its tenant; values travel as columns or bound
// parameters, never in the text of a statement; nothing rests on ClickHouse's
// insert deduplication, whatever may have been stored is looked up before it is
// sent again.
package store
