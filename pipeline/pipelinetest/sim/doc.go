// Package sim is a broker and tables in memory for simulations of the stages. A test runs a real
// stage on them within testing/synctest, on a simulated clock. A seed determines which operation
// fails, before or after it was applied, which operation hangs, which delivery is lost, and where
// the process is killed.
//
// It owns the faults, the lives of a process, the history that a failing seed prints, and the
// part of the broker's semantics on which a stage relies: duplicates, delivery and ack wait,
// rewinding, compare-and-swap. It does not own the guarantees of a stage: the stage's own
// simulation_test.go checks them.
//
// Invariants: every random number follows from the seed, the name of the operation and how often
// it was requested before, so it does not depend on which goroutine runs first; a killed process
// changes nothing any more; no fault happens after the time of faults. The tests of this package
// check that the broker in memory answers like the real one.
package sim
