// Package micro implements AIVS-Micro (draft section 6): a proof of six members about what one
// scan of one URL found, small enough for a DNS TXT record.
//
// It owns the proof's form, its canonical payload, signing, verifying and the TXT form. It does
// not own keys or scanning. It does no I/O and reads no clock.
//
// Invariants: the payload is the draft's, verbatim, including prefixes; a proof whose payload
// could be parsed in two ways (a "|" in a member) is neither signed nor accepted; members that a
// signature does not cover are refused.
package micro
