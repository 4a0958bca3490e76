// Package store writes the pipeline's results to ClickHouse, and reads them: traces, verdicts,
// drift, sessions, bundles, cards, revocations, dead letters, ledgers, the results of handshakes
// and tasks, and decisions about messages. Only this package uses clickhouse-go and contains SQL
// (sql/migrations, sql/queries).
//
// It owns the tables and views, the way rows are written so none is lost or visible twice, and
// the classes of errors: retry, split, stop. It does not judge traces, does not seal sessions and
// does not use the broker: what it needs to know about a message arrives as values (Meta).
//
// Invariants: rows are inserted, and never altered or deleted; only retention removes rows. Every
// row carries its tenant. Values travel as columns or bound parameters, never in the text of a
// statement. Nothing depends on ClickHouse's insert deduplication: rows that may already be
// stored are looked up before they are sent again.
package store
