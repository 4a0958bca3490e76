// Package export writes one archive with the sealed bundles of a range of time, for somebody who
// checks them elsewhere: each bundle with the files next to it, an index (JSON and text), the list of
// public keys, a verifier and a README. Python 3 alone verifies all of it.
//
// It owns the form of the archive and of the index, and the program verify_all.py. It does not own
// the bundles and their verification (package aivs), the key list (aivs/keyring), nor the choice of
// the bundles, which its caller makes. It reads no file and no clock.
//
// Invariants: the same bundles in the same state give the same bytes. What the caller knows to be
// missing from the range is named in the index. The archive has no bundle whose bytes differ from
// those that were verified.
package export
