// Package accounts writes the users of a NATS server of one's own, each with the rights
// that it needs (stream.Rights), in the language of the server's configuration.
//
// It owns the two accounts, the file and the secrets. Services and streams are in one
// account, agents in another, which imports the subjects that agents publish on. So an
// answer of the broker reaches nobody but agents, whatever reply subject an agent asked
// for: in the account of the streams such an answer could be stored as a card, or as
// another agent's trace.
//
// Invariants: a secret that exists is kept; secrets are in files of mode 0600 and nowhere
// else; what was written before is replaced whole.
package accounts
