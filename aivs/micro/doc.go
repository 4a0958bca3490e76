// Package micro is AIVS-Micro (draft section 6): a proof of six members that one
// scan of one URL found what it found, small enough for a DNS TXT record.
//
// It owns the proof's form, its canonical payload, signing, verifying and the TXT
// form. It does not own keys nor scanning. It does no I/O and reads no clock.
//
// Invariants: the payload is the draft's, verbatim, prefixes included; a proof
// whose payload could be read in two ways (a "|" in a member) is neither signed
// nor accepted; what a signature does not cover is refused.
package micro
