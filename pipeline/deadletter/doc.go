// Package deadletter is what operators do with dead letters: look at them, and publish their bytes again. The tool and
// the console show the same of a letter, and do the same with it.
//
// It owns the form in which a letter is shown, and the order of the steps of a replay. It does not own the rows
// (pipeline/store), the marks (pipeline/wire), or who may do it: ingest decides that by the token of the
// request, and writes the operator's ledger.
//
// Invariants: what is shown has no secrets that the rules of redaction know, and the bytes of a letter are shown
// only as JSON after that; a letter is marked as replayed after ingest has accepted its original bytes, and is open
// until then; the operator's ledger has a replay before its bytes are sent.
package deadletter
