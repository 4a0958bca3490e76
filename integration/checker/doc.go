// Package checker checks the invariants of a pipeline that has no work left, after a
// test has made faults in it.
//
// It owns what must hold then, in addition to what package reconcile compares for anyone
// (plumbline check --deep): every acknowledged trace is in the stream, and is one row or
// a dead letter; each record is visible once; every stored trace has the one verdict
// that the pure function returns; drift equals a replay, its points are the traces, its
// alerts the streaks of its points; a session's bundles are one chain; the ledger claims
// the bundles; nothing has two owners; drift and exporter have owners that answer;
// acknowledgements cover everything. Each test checks its further expectations itself.
//
// It does not trust the stages. It compares with stream TRACES, the cards, and the pure
// packages aap, aap/drift and aivs. It reads rows as an operator would.
package checker
