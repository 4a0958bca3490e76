// Package anchor links bundles to external evidence, beyond the draft: to a time, by an RFC 3161
// time stamp of the signature, and to one append-only history of all bundles, by a proof of
// inclusion in a transparency log.
//
// It owns the leaf of the log, checkpoints (c2sp.org/tlog-checkpoint), proofs
// (c2sp.org/tlog-proof@v1), the definition of consistency, and requests to and answers of a time
// stamping authority. It keeps no log and contacts no authority (pipeline/tlog does).
//
// Invariants: everything is proven offline, by keys and certificates that the caller supplies;
// nothing in a proof or an answer is trusted by itself. All input is bounded in size.
package anchor
