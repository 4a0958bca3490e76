// Package exporter is the stage that seals: a fold of stream RECEIPTS is its
// index of open sessions, which keeps of each so many receipts at most; a session that ended, is idle, was asked for or grew
// too large becomes a signed bundle on disk.
//
// It owns when a session is sealed, the order of the steps and what is told about
// them (tables bundles, sessions, session_verdicts, seal_runs; alerts; ledger CLAIM;
// aap.bundle.sealed), and finds out what the verdict on a session (aap/session) needs
// to know of the agent's other sessions. The steps themselves are package seal's.
//
// Invariants: a session is sealed only when the verifier has acknowledged every
// trace up to its cut, so that all its receipts are known; where rows and
// receipts differ it is held and reported, never sealed over. A plan is fixed by
// compare-and-swap before its file appears, and marked sealed after everything
// that follows from it is recorded: a crash anywhere leaves a plan that the next
// round takes through the same code. Nothing but the bucket and the files is
// state: the index is folded anew from the checkpoint. A tenant has one exporter, by
// a lease.
package exporter
