// Package machine runs everything on one machine: broker, database engine, tables,
// signing key and the four stages, as one Machine.
//
// It owns the order in which these start and stop, the layout of the data
// directory, and endpoints.json, by which other commands find a running machine.
// It owns no stage and no server: where the address of an external broker or
// ClickHouse is configured, the machine uses it instead of the embedded one.
//
// Invariants: a data directory has one machine; Start returns only when
// everything works, and leaves nothing behind when it fails; stages stop in the
// order in which a trace passes through them, then the servers stop; work that a
// stage does not finish within the drain budget is redelivered after the next start.
package machine
