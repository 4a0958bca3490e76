// Package ledger is the integrity chain of the message-integrity RFC (section 3). Entries are
// numbered, and each entry's hash covers the previous entry, so a changed, lost or inserted
// entry is detected.
//
// It owns the form and hash of an entry, the file form (one JSON object a line: seq, type,
// data, hash), appending, validation of one file and of a chain of files, and the rule for
// rotation. It does not own where a ledger is stored, or which events get an entry. It does no
// I/O of its own and reads no clock.
//
// Invariants: entry 0 and no other is GENESIS. Numbers have no gap. Data is hashed in its
// canonical form (RFC 8785), and a number that this form would change is refused. Content that
// a hash does not cover is refused, so the whole meaning of a file is protected. A chain
// detects tampering but does not prevent it: anyone who can write the whole file can write
// another one (section 3.2).
package ledger
