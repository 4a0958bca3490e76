// Package reconcile compares what the pipeline keeps in several places: stream
// TRACES and the rows made of it, receipts, verdicts, dead letters, bundles and
// their records, the operator's ledger, the transparency log.
//
// It owns what must agree with what, the names of the differences, and the count of
// what was compared. It owns none of the places and changes nothing; it does not
// judge traces again, and it does not say who changed something.
//
// Invariants: it may run while the pipeline works: what is under way is counted as
// such and is no difference; what retention has removed is counted as expired. Its
// memory does not grow with the traces: they are read in the stream's order from
// all sides at once. It grows by some hundred bytes for each session and bundle.
package reconcile
