// Package seal turns a session's stored traces into a signed AIVS bundle, in the
// steps that the exporter's commit consists of.
//
// It owns the record of what is planned and sealed (Record, in bucket seals), the
// comparison of rows with receipts, the mapping of a trace to a row of the audit
// log, and the file: staged, synced, renamed. It does not own when a session is
// sealed (pipeline/exporter), the verdict on the session (aap/session) nor the
// bundle's bytes (package aivs).
//
// Invariants: nothing is sealed over rows that differ from their receipts; a
// file with a bundle's name is a whole bundle; a bundle follows from its plan and
// the rows alone; no digest of an unredacted record enters a bundle in which
// something was redacted.
package seal
