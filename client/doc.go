// Package client is linked into agents' own runtimes. It has the value coherence handshake
// (AAP section 6) with a peer, over HTTP, or over NATS with client/overnats. It also has the
// receiver's side of the message-integrity RFC, over HTTP (Runtime): messages are verified
// before the model sees them, tool calls are decided before they are made, and tool results
// are signed before they are used. It is small: it links no NATS and no part of a service.
//
// Of the handshake it owns the initiator's side: the order of the messages, what an answer must
// prove before it is used, and which connections are allowed (section 9.4: TLS
// 1.3, or this machine). The runtime decides what follows from the result.
//
// Invariants: no message is sent over a connection that is not allowed for it; an
// answer with another request_id, of another agent, out of time or, if keys are
// given, without a valid signature is an error and never a result; a message, call
// or result that the gateway did not accept is an error.
package client
