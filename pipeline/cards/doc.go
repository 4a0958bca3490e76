// Package cards is the registry of Alignment Cards: every card ever issued and
// every revocation, by card id, in two buckets of the broker. Memory has an index of
// all of them, and compiled cards as far as they have place.
//
// It owns registration, revocation, look-up and the view of an agent's cards over
// time: which is in force, which keys vouch for the next one, which agent a host
// stands for. It does not own what a card means (package aap) nor who may
// register or revoke one (pipeline/ingest).
//
// Invariants: a card id never changes its content, so a compiled card is
// immutable and may be shared; a card is revoked once and for all; a look-up
// that fails has asked the bucket itself; under Watch no card is in memory whose
// earlier revocation is not; what is answered does not depend on which cards the
// cache holds.
package cards
