// Package message implements the message-integrity RFC's protection of an agent's input:
// authentication of messages (section 2, layer 1), intents that bound what a message permits
// (layer 2), the receiver's policy by source (layer 3), and authentication of tool results
// (section 2.4).
//
// It owns the signed byte forms, the wrapper, stripping, intents, decisions and the form of
// their records. It does not own the storage of keys, nonces and records, or the right to ask
// for a signature: pipeline/messages and pipeline/ingest do. Package message/audit compares
// traces with the records. This package does no I/O and reads no clock.
//
// Invariants: a key never leaves this package, and prints as its id. A MAC covers every field
// on which a decision depends, each with its length, so no two messages share a byte form. A
// MAC for a tool result is not valid for a message. In doubt the decision goes against the
// message.
package message
