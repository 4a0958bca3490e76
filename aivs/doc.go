// Package aivs implements the session proof of draft-stone-aivs-00: the hash-chained audit log, the
// signed bundle with the embedded verify.py, and a verifier that trusts nothing inside a bundle.
//
// It owns the bytes: rows and their hashes (section 2), the row text (section 3), the signature
// (section 4), the archive (section 5) and its verification (section 7). It does not know traces:
// its caller maps a trace to a row. aivs/redact hides secrets before a row is made, and
// pipeline/keyfile reads and makes key files. It opens no file and reads no clock.
//
// Invariants: the same Input and key give the same bytes. Every file of a bundle is ASCII. The
// fields of a row that are hashed never contain ':'. The draft's own signature covers everything
// in a bundle: it covers all rows, the first row (open) lists the other members, and the last row
// (seal) covers the contents of the rows before it.
//
// Size: builder and verifier are one package, because the verifier accepts a bundle of our dialect
// only if every file is what the builder would write, and calls the builder's functions for that.
package aivs
