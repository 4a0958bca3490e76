// Package tlog keeps the external evidence for sealed bundles: the transparency log of all
// bundles, and the time stamps of an authority.
//
// It owns the log's files, the order in which they are written, and the requests to an authority.
// It does not own the formats (aivs/anchor), the decision when a bundle is sealed
// (pipeline/exporter) or the times of retries (pipeline/outbox).
//
// Invariants: a leaf is in the log once a checkpoint that covers it is on disk, and is never
// removed; a crash at any step leaves the log in the state before or after. Appending a leaf
// again changes nothing. A log whose files disagree with its checkpoint is not opened. A bundle
// waits for its stamp in a list on disk, and nothing else waits for the authority.
package tlog
