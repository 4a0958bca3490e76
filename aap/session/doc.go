// Package session verifies sessions (AAP section 7.2, level 2): it finds problems that only
// several traces of a session together show.
//
// It owns the findings of a session (gaps, order, turns, escalations without an answer,
// conditions and denials that a later action violates, loops of equal acts), the loops of a
// session that still runs, the state carried from one part of a session to the next, and the
// questions about the agent's other sessions. It does not own the verdicts on single traces
// (package aap), the answers to the questions (pipeline/exporter looks them up), or which traces
// of a running session are applied and when (pipeline/drift). It does no I/O and reads no clock.
//
// Terms: the place of a trace is its position in the audit log, by sequence number or by time.
// Traces of the same place have no order among themselves, whichever of them arrived first.
//
// Invariants: a verdict depends only on the part's traces in the order of the audit log, their
// verdicts, the state from the previous part, the answers and the given time. Memory is bounded (see the constants in
// judge.go), whatever the traces say; where a limit prevents a check, the verdict says so. A
// gap is stored as a range, so a trace with a large number costs nothing.
package session
