// Package bench measures how many traces a second this machine takes from
// publishing to queryable: with the verifier alone, with all stages, and, beside
// them, the floor: the same publishing, consumer, batches, acks and durability, into
// a table of sequence and raw bytes, with no decoding and no judgement.
//
// It owns the load, the floor's loop and the clock. Each measurement starts a
// machine of its own on an empty data directory; the rounds of the three are
// interleaved, and a ratio compares measurements of one round, because absolute
// figures move with the machine.
//
// Invariants: every measurement publishes the same traces; the clock stops only
// when the broker says that the last of them is acknowledged, which is after it is
// on disk and queryable, and then all rows are counted.
package bench
