// Package cards is the registry of Alignment Cards: every card ever issued, by
// card id, in a bucket of the broker, and compiled in the memory of each process
// that judges.
//
// It owns registration, look-up and the view of an agent's cards over time. It
// does not own what a card means (package aap) nor who may register one
// (pipeline/ingest).
//
// Invariants: a card id never changes its content, so a compiled card is
// immutable and may be shared; a look-up that fails has asked the bucket itself.
package cards
