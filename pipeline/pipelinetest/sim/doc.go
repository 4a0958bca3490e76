// Package sim is a broker and tables in memory for simulations of the stages: a test
// runs a real stage on them within testing/synctest, on a clock of its own, while a
// seed says which operation fails, before or after it was applied, which hangs, which
// delivery is lost and where the process is killed.
//
// It owns the faults, the lives of a process, the history that a failing seed prints, and
// as much of the broker's semantics as a stage relies on: duplicates, delivery and ack
// wait, rewinding, compare-and-set. It does not own what a stage promises, which is
// for the stage's own simulation_test.go to check.
//
// Invariants: every random number follows from the seed, the name of the operation and
// how often it was asked for before, so that it does not depend on which goroutine runs
// first; a killed process changes nothing any more; no fault happens after the time of
// faults is over. That the broker in memory answers as the real one does is held by
// the tests of this package.
package sim
