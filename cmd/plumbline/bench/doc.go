// Package bench measures how many traces per second this machine processes, from
// publishing to queryable: with the verifier alone, and with all stages. It also
// measures the floor: the same publishing, consumer, batches, acks and durability, into
// a table of sequence and raw bytes, without decoding and judging.
//
// It owns the load, the floor's loop and the clock. Each measurement starts its own
// machine on an empty data directory. The rounds of the three kinds are interleaved, and a
// ratio compares measurements of one round, because absolute figures depend on the
// machine's state.
//
// Invariants: every measurement publishes the same traces; the clock stops only
// when the broker reports that the last of them is acknowledged, which is after it is
// on disk and queryable; then all rows are counted.
package bench
