// Package keystore keeps an installation's signing keys on disk: for each purpose a key file
// (pipeline/keyfile), and in the same directory keys.jsonl, the signed list of all keys
// (aivs/keyring).
//
// It owns the steps by which a key comes into use, the recovery when they are interrupted, and
// how a running service adopts the next key. It does not own the formats of the files or what is
// signed.
//
// Invariants: a key that Open returns is on the list with its purpose, and is the one added last.
// The private key of the next one is on disk before the list has it, and gets the key file's name
// afterwards: a crash at any step leaves the previous or the next key in use, and the next call
// continues from there. Processes that open a directory's keys at the same time wait for each
// other. A service's key is in the operator's ledger before it signs.
package keystore
