// Package aivs implements the session proof: the hash-chained audit log of draft-stone-aivs-00,
// its redaction, its signed bundle, the embedded verify.py, and a verifier that trusts nothing
// inside a bundle.
//
// It owns the bytes: rows and their hashes (section 2), the row text (section 3), redaction
// (3.3), truncation (3.4), the signature (section 4), the archive (section 5) and its
// verification (section 7). It does not know traces: its caller maps a trace to a row.
// pipeline/keyfile reads and makes key files. It opens no file and reads no clock.
//
// Invariants: the same Input and key give the same bytes. Every file of a bundle is ASCII. The
// fields of a row that are hashed never contain ':'. The draft's own signature covers everything
// in a bundle: it covers all rows, the first row (open) lists the other members, and the last row
// (seal) covers the contents of the rows before it.
package aivs
