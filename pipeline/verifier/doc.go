// Package verifier is the stage that judges traces: it takes traces from the stream, checks each
// against its agent's Alignment Card, stores trace and verdict, writes receipts and alerts, and
// only then records that they are done.
//
// It owns the order of those steps, dead letters of messages that can never be stored, and the
// judging of traces whose card, or its revocation, came late. It does not own the rules of
// judgement (package aap; of messages, message/audit), the tables (pipeline/store) or the
// broker's messages (pipeline/stream).
//
// Invariants: a position is recorded only when, of each message up to it, the trace is durable in
// ClickHouse, or its bytes are a durable dead letter (only the beginning of a message that is larger
// than any trace); receipts and alerts are written before the position is recorded, so a crash at any
// point repeats steps and loses none; every step is idempotent.
package verifier
