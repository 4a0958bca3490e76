// Package keyring is the signed list of the keys that an installation signs with: each key with
// its purpose and its period of validity. A reader who has pinned one key can find all keys of
// its purpose, older and newer ones.
//
// It owns the list's format (keys.jsonl: each line is a whole list and adds one key), its rules
// and signatures, the check whether a key may have signed something with a given date, and the
// list as a JSON Web Key Set. It does not read or write files (pipeline/keystore does) and does
// not read the clock.
//
// Invariants: a Ring holds only lines that were checked. A line is signed by the key it adds,
// which thereby vouches for every older key of its purpose, and by the key of that purpose that
// was current before, which thereby hands over to the new key. A line changes keys of one purpose
// only, and never extends a key's period of validity. A key has one purpose, in whatever file it
// is.
package keyring
