// Package client is for agents' own runtimes: the value coherence handshake (AAP
// section 6) with a peer, over HTTP, or over NATS with client/overnats; and the receiver's
// side of the message-integrity RFC, over HTTP: messages are verified before the model sees
// them, tool calls decided before they are made, tool results signed before they
// are believed (Runtime). It is small: it links no NATS and no part of a service.
//
// Of the handshake it owns the initiator's side: the order of the messages, what an answer must
// bear out before it is believed, and over what it may travel (section 9.4: TLS
// 1.3, or this machine). What to make of the result is the runtime's decision.
//
// Invariants: no message leaves over a connection that is not fit for it; an
// answer of another request_id, of another agent, out of time or, where keys are
// given, without a right signature is an error and never a result; a message, call
// or result without the gateway's consent is an error.
package client
