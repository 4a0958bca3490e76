// Package reconcile compares the data that the pipeline keeps in several places: stream TRACES
// and the rows made from it, receipts, verdicts, dead letters, bundles and their records, the
// operator's ledger, the transparency log.
//
// It owns the rules of what must agree, the names of the differences, and the counts of what was
// compared. It owns none of the places and changes nothing; it does not judge traces again, and
// it does not determine who changed something.
//
// Invariants: it may run while the pipeline works: work in progress is counted as such and is no
// difference; data that retention has removed is counted as expired. Its memory does not grow
// with the traces: it reads all sides at once, in the stream's order. Its memory grows by some
// hundred bytes for each session and bundle.
//
// It has more than 1,800 lines because it compares a dozen places with each other, and a
// difference between two of them is work in progress or not depending on what was read before.
package reconcile
