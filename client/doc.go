// Package client is linked into agents' own runtimes. It makes traces of an agent's decisions and delivers them in the
// background (Recorder, whose spool on disk is that of the clients in other languages: docs/CLIENTS.md), publishes
// traces and registers cards (Publisher), checks values with a peer by the handshake of AAP section 6 (Client, over HTTP, or over NATS with client/overnats), and is
// the receiver's side of the message-integrity RFC (Runtime): messages are verified before the model sees them, tool
// calls are decided before they are made, and tool results are signed before they are used.
//
// It owns the retries of a publisher, the order of the handshake's messages, what an answer must prove before it is
// used, and which connections are allowed for handshake and messages (section 9.4: TLS 1.3, or this machine). The
// runtime decides what follows from a result. It is small: it links no NATS and no part of a service.
//
// Invariants: a Recorder never returns an error to the agent for a trace, and waits only where its documentation says
// so; the bytes of a trace are built once, and a trace leaves the spool only when ingest has answered for it; a line or
// request is repeated with the same bytes, and only while its outcome is unknown; no handshake
// message is sent over a connection that is not allowed for it; an answer with another request_id, of another agent,
// out of time or, if keys are given, without a valid signature is an error and never a result; a message, call or
// result that the gateway did not accept is an error.
package client
