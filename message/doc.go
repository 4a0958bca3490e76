// Package message is the message-integrity RFC's protection of what an agent is
// told: authentication of messages (section 2, layer 1), intents that bound what a
// message permits (layer 2), the receiver's policy by source (layer 3), and
// authentication of tool results (section 2.4).
//
// It owns the byte forms that are signed, the wrapper, stripping, intents,
// decisions and the form of their records. It does not own where keys, nonces and
// records are kept, nor who may ask for a signature: pipeline/messages and
// pipeline/ingest do. What a trace says about messages is held against the records
// in message/audit. It does no I/O and reads no clock.
//
// Invariants: a key never leaves this package, and prints as its id; a MAC covers
// every field that a decision rests on, each with its length, so that no two
// messages share a byte form; a MAC made for a tool result is
// worth nothing for a message; a doubt is decided against the message.
package message
