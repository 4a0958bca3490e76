// Package events defines what services write to the operator's ledger: for each kind of event the
// type of its entry (message-integrity RFC, section 3.1), its data and its id.
//
// It is a package of its own, apart from opledger, because ingest, keys and the tool write such
// events without linking the clients of the broker and the database, as opledger does.
//
// It owns these formats; docs/LEDGER.md lists them for readers. It does not own how an event
// reaches the ledger (pipeline/stream) or how it is chained (pipeline/opledger).
//
// Invariants: the same event has the same id, so it is stored once when it is published again
// within the broker's duplicate window; no event is larger than the broker's largest message.
package events
