// Package demo runs the pipeline once, from publishing to verified bundles, and
// compares what was found with what was planted, id for id.
//
// It owns its own machine, the script that is played on it (a simulated fleet, or a
// recorded corpus about which nothing is known in advance), the conditions under which the
// pipeline has no work left, and the comparison. It publishes as any publisher
// does, over HTTP, and reads results as any operator does: from streams, tables
// and bundle files.
//
// Invariants: it never waits for a fixed time, but until a condition holds; every
// number counts only the traces that this run published, as they are after the run, so
// a second run on the same data directory reports the same numbers; every published trace
// is looked up by the SHA-256 of its bytes.
package demo
