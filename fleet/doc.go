// Package fleet is the simulated fleet of `plumbline demo`: agents with their Alignment Cards,
// the lines they publish, and the truth about those lines.
//
// The truth is planned, not judged: the remarks of each trace are decided before it is written.
// The package therefore imports only schema, for the names of violations, findings and reasons.
//
// Invariants: a Config gives the same bytes on every run. A trace that Planted does not list
// has no violation and no finding of a type in schema, and causes none for its session. An
// agent's event times strictly increase in publishing order. Ordinary behaviour stays well
// above the drift threshold of the agent's own baseline, and each planted streak is well below
// it. The package does no I/O and reads no clock.
package fleet
