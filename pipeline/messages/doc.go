// Package messages authenticates messages to agents, for their gateways and runtimes. It signs
// messages, decides whether a message is accepted and which tools may be called on its authority,
// and signs tool results.
//
// It owns the policies file, the order of the checks, and the records in bucket messages. It does
// not own the byte forms and rules (package message), the rights of tokens (pipeline/auth), or
// HTTP.
//
// Invariants: the key is created here at the start and stays in this process's memory. A message
// that another process signed gets the answer unknown_key and is never valid. A record is durable
// before anyone learns its id, so an id without a record was made up. Each message is accepted
// once, by one process, as long as the bucket exists. A nonce is stored only in the records of
// its message. The permissions of an accepted message never grow.
package messages
