// Package checker walks the invariants of a pipeline that has come to rest, after
// whatever the test did to it.
//
// It owns what must be true then, beside what package reconcile compares for anyone
// (plumbline check --deep): every acknowledged trace is in the stream, and is one row or
// a dead letter; each record is visible once; every stored trace has the one verdict
// that the pure function gives; drift equals a replay, its points are the traces, its
// alerts the streaks of its points; a session's bundles are one chain; the ledger claims
// the bundles; nothing has two owners; drift and exporter have their leases;
// acknowledgements cover everything. What a single
// test expects beside that is the test's business.
//
// It trusts no stage: the truth is stream TRACES, the cards, and the pure packages
// aap, aap/drift and aivs. Rows are read as an operator would read them.
package checker
