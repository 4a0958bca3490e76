// Package cards is the registry of Alignment Cards: every issued card and every revocation, by
// card id, in two buckets of the broker. Memory holds an index of cards and of all revocations,
// and as many compiled cards as fit. The index has all cards, or, where the registry relies on the
// rows of the database (Rely), those that are not rows yet and those of the agents that were asked
// about (Know).
//
// It owns registration, revocation, lookup and the history of an agent's cards: which card is in
// force, which keys are trusted for the next one, which agent belongs to a host. It does not own
// the meaning of a card (package aap), the routes that register and revoke one (pipeline/api), the
// right to do so (the scopes of pipeline/auth) or the rows (pipeline/store, written by pipeline/verifier).
//
// Invariants: the content of a card id never changes, so a compiled card is immutable and may be
// shared; a revocation is final; a lookup reports a card as unknown only if the bucket did not
// have it a second ago at most, or if no card can have the id; under Watch, if a card is in
// memory, so is every earlier revocation of it; answers do not depend on which cards are in the
// cache or the index; data of an agent that is not known yet is kept forever.
package cards
