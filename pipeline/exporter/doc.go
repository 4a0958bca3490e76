// Package exporter is the stage that seals sessions. It folds stream RECEIPTS into an index of
// open sessions, which keeps a bounded number of receipts of each. A session that ended, is idle,
// was requested or grew too large becomes a signed bundle on disk.
//
// It owns when a session is sealed, the order of the steps, what is recorded about them (tables
// bundles, sessions, session_verdicts, seal_runs; alerts; ledger CLAIM; aap.bundle.sealed), and
// the queries about an agent's other sessions that the verdict on a session (aap/session) needs.
// Package seal owns the steps themselves.
//
// Invariants: a session is sealed only when the verifier is done with every trace up to its cut, so
// all its receipts are known. Where rows and receipts differ the session is held and reported,
// never sealed. A plan is written by compare-and-swap before its file appears, and marked as
// sealed after all its results are recorded: a crash at any step leaves a plan that the next
// round carries out. Only the bucket and the files are state: the index is folded again from the
// recorded position. A session has one owner, which confirms that before it places or records; what an
// earlier owner still does is the same, and replaces nothing. One exporter, which has the lease, keeps
// what has one writer (keeper): a session is marked as sealed after the keeper has its bundle.
//
// It is larger than 1,800 lines because each bundle also needs keys, the transparency log, time
// stamps and copies, which are steps of the same commit; packages keystore, tlog and destination do
// their work. exporter.go has the order of all steps.
package exporter
