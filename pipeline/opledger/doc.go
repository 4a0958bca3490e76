// Package opledger keeps the operator's ledger: it chains the events that services published to
// stream LEDGER into ledger files (message-integrity RFC, section 3), in stream order, and stores
// them as rows for analysts.
//
// It owns the directory of the files, the data of an event that an entry holds, and the position
// at which chaining continues after a crash. It does not own the format of an entry (package
// ledger) or the choice of events (the services). Only one process at a time may have the
// directory open: the exporter holds its lock.
//
// Invariants: each entry states its event's place in the stream, so the files themselves show
// where to continue, and no event is chained twice or left out; a file that is not the last is
// complete and read-only; a line that a crash left incomplete is removed, and its event is read
// again.
package opledger
