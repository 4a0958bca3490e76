// Package fleet is the simulated fleet of `plumbline demo`: agents with their
// Alignment Cards, the lines they publish, and the truth about those lines.
//
// The truth is planted, never found: what each trace carries is decided before
// it is written, and no judge is asked. The package therefore imports schema
// alone, for the names of violations, findings and reasons.
//
// Invariants: a Config gives the same bytes on every run; a trace that Planted
// does not list carries no violation and no finding of a type in schema, nor does its
// session because of it; an
// agent's event times strictly increase in publishing order; ordinary behaviour
// stays well above the drift threshold of the agent's own baseline, and each
// planted streak falls well below it. It does no I/O and reads no clock.
package fleet
