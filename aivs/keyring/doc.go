// Package keyring is the signed list of the keys that an installation signs with:
// which key, for what, and from when to when. Whoever has pinned one key finds all
// keys of its purpose by it, older and newer ones.
//
// It owns the list's form (keys.jsonl: one whole list a line, each adding one key),
// its rules and signatures, the question whether a key may have signed something
// dated then, and the list as a JSON Web Key Set. It does not read or write files
// (pipeline/keystore does), nor is it asked what time it is.
//
// Invariants: a Ring holds lines that were all checked. A line is signed by the key
// it adds, which thereby vouches for every older key of its purpose, and by the key
// of that purpose that was current before, which hands over to it. A line changes
// keys of one purpose only, and never lengthens what a key is good for. A key has
// one purpose, whatever file it is in.
package keyring
