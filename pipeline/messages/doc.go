// Package messages authenticates what agents are told, for their gateways and
// runtimes: it signs messages, decides whether one is taken and which tools may be
// called on its authority, and signs tool results.
//
// It owns the policies file, the order of the checks, and the records in bucket
// messages. It does not own the byte forms and rules (package message), who may
// ask (pipeline/auth), nor HTTP.
//
// Invariants: the key is made here, at the start, and stays in this process's
// memory; a message that another process signed is answered unknown_key and never
// valid; a record is durable before anyone is told its id, so that whoever cites an
// id that is not there has made it up; each message is accepted once, by whatever
// process, for as long as the bucket lasts; a nonce is kept nowhere but in the records
// of its message; what an accepted message permits never grows.
package messages
