// Package wire defines the requests of a runtime to a gateway and the gateway's answers: the
// JSON of the message routes (docs/MESSAGES.md).
//
// It owns the members of requests and answers. It does not own the routes, the decisions
// (pipeline/messages) or the client's side (client). It does no I/O.
//
// Invariants: client and service share these types, so each reads exactly what the other
// writes.
package wire
