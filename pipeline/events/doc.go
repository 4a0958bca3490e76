// Package events is what services write into the operator's ledger: for each kind
// of event the type of its entry (message-integrity RFC, section 3.1), its data and
// its id.
//
// It owns these forms; docs/LEDGER.md lists them for readers. It does not own how
// an event reaches the ledger (pipeline/stream), nor how it is chained
// (pipeline/chain).
//
// Invariants: the same event has the same id, so that it is stored once when it is
// told again within the broker's duplicate window; no event is larger than a
// message of the broker may be.
package events
