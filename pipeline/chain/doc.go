// Package chain keeps the operator's ledger: it chains the events that services
// wrote to stream LEDGER into ledger files (message-integrity RFC, section 3), in
// stream order, and makes rows of them for analysts.
//
// It owns the directory of the files, what of an event an entry holds, and where
// chaining goes on after a crash. It does not own an entry's form (package
// ledger) nor what is worth an event (the services). One process at a time may
// have the directory open: the exporter holds its lock.
//
// Invariants: each entry names its event's place in the stream, so that the files
// themselves tell where to go on, and no event is chained twice or left out; a file
// that is not the last is complete and read-only; a line that a crash cut short is
// taken off again, and its event read anew.
package chain
