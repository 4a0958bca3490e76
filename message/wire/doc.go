// Package wire holds what a runtime asks a gateway and what the gateway answers:
// the JSON of the message routes (docs/MESSAGES.md).
//
// It owns the members of requests and answers. It does not own the routes, nor the
// decisions (pipeline/messages), nor the client's side (client). It does no I/O.
//
// Invariants: client and service share these types, so that neither can read what the
// other does not write.
package wire
