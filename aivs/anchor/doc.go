// Package anchor ties bundles to something outside them, beyond the draft: to a
// time, by an RFC 3161 time stamp of the signature, and to one append-only history
// of all bundles, by a proof of inclusion in a transparency log.
//
// It owns the leaf of the log, checkpoints (c2sp.org/tlog-checkpoint), proofs
// (c2sp.org/tlog-proof@v1), what consistency means, and requests and answers of a
// time stamping authority. It keeps no log and asks no authority (pipeline/anchors).
//
// Invariants: what is proven is proven offline, by keys and certificates that the
// caller names; nothing in a proof or an answer is trusted for itself. What is read
// is bounded.
package anchor
