// Package stream is the pipeline's access to the broker. No other package of the pipeline uses the
// NATS client.
//
// It owns the connection, the topology (streams, buckets, durable consumers and the settings that
// the durability guarantee depends on), the rights of the broker's users, group commit of traces,
// consumption with explicit acks, compare-and-swap buckets, object stores, and the leases of stages
// that run once. It does not own what messages say (pipeline/wire) or what follows from them (the
// stages).
//
// Invariants: whatever this package published without an error is stored durably. An ambiguous
// failure is repeated under the same message id, so nothing is stored twice within the duplicate
// window. A message is acknowledged only if the caller passes it.
//
// It is larger than other packages because everything in it shares one connection: its loss, the
// broker's refusals and the classification of its errors.
package stream
