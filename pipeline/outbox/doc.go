// Package outbox is a persistent retry queue (an outbox) for work that needs something outside
// this machine: a time stamp, a copy in another store.
//
// It owns the list on disk and the times of retries. It does not own the work itself.
//
// Invariants: an item stays in the list until it is done, also after a crash; it may be processed
// more than once. Adding never waits for the external service. An item that always fails does not
// block the others. While the external service is unavailable, the list pauses instead of trying
// each item.
package outbox
