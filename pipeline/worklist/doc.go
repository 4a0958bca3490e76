// Package worklist keeps what waits for something outside this machine: a time
// stamp, a copy in another store.
//
// It owns the list on disk, and when it is tried again. It does not own what is
// done about an item.
//
// Invariants: an item that was added stays until it is settled, over crashes; it may
// be settled more than once. Nobody who adds waits for what is outside. One item
// that cannot be settled keeps no other from it; what is outside and away is left
// alone for a while, rather than asked for each item.
package worklist
