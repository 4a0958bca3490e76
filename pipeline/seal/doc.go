// Package seal turns a session's stored traces into a signed AIVS bundle. It provides the steps
// of the exporter's commit. It is called seal, not bundle, because it also has the record of a sealed
// part and the comparison that decides whether a part may be sealed; package aivs has the bundles.
//
// It owns the record of what is planned and sealed (Record, in bucket seals), the comparison of
// rows with receipts, the mapping of a trace to a row of the audit log, and the bundle file:
// staged, synced, renamed. It does not own the decision when a session is sealed
// (pipeline/exporter), the verdict on the session (aap/session) or the bundle's bytes (package
// aivs).
//
// Invariants: a session whose rows differ from its receipts is never sealed; a file with a
// bundle's name is a whole bundle; a bundle depends only on its plan and its rows; no digest of
// an unredacted record enters a bundle in which a value was redacted, nor does a signature over one.
package seal
