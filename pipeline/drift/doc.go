// Package drift is the stage that watches: it applies each agent's traces, in
// the order in which they were made, to the agent's series under its card, and
// stores a point for each, an alert for each sustained streak (AAP section 8),
// what they were compared with, and the state to continue from.
//
// It owns the order: how long a trace waits for older ones, which come too late,
// which say nothing new. It does not own the step (package aap/drift), the tables
// (pipeline/store), the wire (pipeline/stream), or what a session is.
//
// Invariants: what is applied, and in which order, follows from the stream alone,
// and what is found of it from the configuration besides, of which pins are a
// part, wherever a worker is stopped and begun again: so a replay gives the same
// points and the same alert ids. An agent's clock orders its traces and advances nothing:
// a trace dated after its arrival stands where it arrived and makes no other late.
// A message is acknowledged when the state that names it is durable. A tenant has
// one drift, by a lease. A second worker on a partition would take deliveries from
// the first; both would see the gap and read again, and the states of either are
// equal or older.
package drift
