// Package stream is the pipeline's access to the broker, the only package that
// knows the NATS client.
//
// It owns the connection, the topology (streams, buckets, durable consumers and
// the settings the promise depends on), group commit of traces, consumption
// with explicit acks, the formats of receipts, dead letters and ledger events,
// compare-and-swap buckets, and the leases of stages that run once. What the
// messages mean is the stages' business.
//
// Invariants: whatever was published here without an error is stored durably;
// an ambiguous failure is repeated under the same message id, so that nothing
// is stored twice within the duplicate window; nothing is acknowledged that the
// caller did not name.
package stream
