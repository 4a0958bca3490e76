// Package keystore keeps an installation's signing keys on disk: for each purpose
// a key file (pipeline/keyfile), and beside them keys.jsonl, the signed list of all keys
// (aivs/keyring).
//
// It owns the order in which a key comes into use, what is left of that when it is
// cut short, and how a running service takes up the next one. It does not own the
// files' forms, nor what is signed.
//
// Invariants: a key that Open returns is on the list, for its purpose, and is the
// one that came last. The private key of the next one is on disk before the list
// names it, and takes the file's name after: a crash at any step leaves the key
// before or the next one, and the next call goes on from there. Those who open a
// directory's keys at one time wait for each other. A service's key is in the
// operator's ledger before it signs.
package keystore
