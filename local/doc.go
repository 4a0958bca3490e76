// Package local runs everything on one machine: broker, database engine, tables,
// signing key and the four stages, as one Machine.
//
// It owns the order in which these start and stop, the layout of the data
// directory, and endpoints.json, by which other commands find a running machine.
// It owns no stage and no server: a broker or a ClickHouse of the user's own
// stands in for the embedded one wherever its address is given.
//
// Invariants: one machine for a data directory; Start returns only when
// everything works, and leaves nothing behind when it fails; stages stop in the
// order in which a trace walks through them, then the servers; what a stage does
// not finish within the drain's budget comes again after the next start.
package local
