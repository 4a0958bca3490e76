// Package ledger is the integrity chain of the message-integrity RFC (section
// 3): numbered entries, each of whose hashes covers the one before it, so that a
// changed, lost or inserted entry shows.
//
// It owns the entry's form and hash, the file form (one JSON object a line:
// seq, type, data, hash), appending, validation within a file and over a chain of
// files, and when to rotate. It does not own where a ledger is kept nor what is
// worth an entry. It does no I/O of its own and reads no clock.
//
// Invariants: entry 0 and no other is GENESIS; numbers have no gap; data is hashed
// in its canonical form (RFC 8785), and a number that this form would change is
// refused; what a hash does not cover is refused, so that every byte of a file's
// meaning is protected. A chain shows tampering, it does not prevent it: whoever
// can write the whole file can write another one (section 3.2).
package ledger
