// Package demo runs the main job once, from publishing to verified bundles, and
// compares what was found with what was planted, id for id.
//
// It owns a machine of its own, what is played on it (a simulated fleet, or a
// recorded corpus of which nothing is known beforehand), how one knows that the
// pipeline has come to rest, and the comparison. It publishes as any publisher
// does, over HTTP, and asks the pipeline as any operator does: streams, tables
// and bundle files.
//
// Invariants: nothing is waited for by the clock, but until facts hold; every
// number tells of the traces that this run published, as they are after it, so
// that a second run on the same data directory tells the same; every trace
// published is looked for by the SHA-256 of its bytes.
package demo
