// Package auth decides which token may act for which agent.
//
// It owns the token file. Each line is a named entry with the SHA-256 of a token, the agents that
// the token covers, its scopes, and, if it may sign messages, the kind of source that its holder
// is. The package does not know HTTP. The caller reads the bearer token from the request, and
// maps ErrUnknownToken to 401 and ErrScope to 403.
//
// Invariants: the file contains no tokens, only hashes, and is refused if other users may read
// it; all entries are compared in constant time; a change of the file takes effect without a
// restart; a broken change leaves the last good entries in force and is reported; no error
// contains a token or a hash.
package auth
