// Package session verifies sessions (AAP section 7.2, level 2): it finds what the
// traces of one session show together, and none of them alone.
//
// It owns the findings of a session (gaps, order, turns, escalations without an
// answer, conditions and denials that a later action disregards), what is carried
// from one part of a session to the next, and the questions that only somebody who
// knows the agent's other sessions can answer. It does not own the verdicts on
// single traces (package aap) nor the answers (pipeline/exporter looks them up).
// It does no I/O and reads no clock.
//
// Invariants: a verdict depends on the part's traces in the order of the audit
// log, their verdicts, the carry, the answers and the given time alone. Memory is
// bounded (see the constants in limits.go), whatever the traces say; where a bound
// keeps something from being checked, the verdict says so. A gap is a range: what a
// number claims costs nothing.
package session
