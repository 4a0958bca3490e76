// Package accounts writes the users of an external NATS server, each with the rights
// that it needs (stream.Rights), in the format of the server's configuration.
//
// It owns the two accounts, the file and the secrets. Services and streams are in one
// account, agents in another. The agents' account imports the subjects that agents publish on.
// As a result, an answer of the broker reaches only agents, whatever reply subject an agent
// names. In the account of the streams, such an answer could be stored as a card, or as
// another agent's trace.
//
// Invariants: an existing secret is kept; secrets are in files of mode 0600 and nowhere
// else; an existing configuration is replaced as a whole.
package accounts
