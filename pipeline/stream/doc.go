// Package stream is the pipeline's access to the broker. No other package uses the NATS client.
//
// It owns the connection, the topology (streams, buckets, durable consumers and the settings that
// the durability guarantee depends on), group commit of traces, consumption with explicit acks,
// the formats of receipts, dead letters and ledger events, compare-and-swap buckets, and the
// leases of stages that run once. It does not interpret messages: the stages do.
//
// Invariants: whatever this package published without an error is stored durably. An ambiguous
// failure is repeated under the same message id, so nothing is stored twice within the duplicate
// window. A message is acknowledged only if the caller passes it.
package stream
