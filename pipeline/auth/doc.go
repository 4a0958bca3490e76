// Package auth decides who may speak for which agent.
//
// It owns the token file: one named entry a line, each with the SHA-256 of a
// token, the agents that it speaks for, its scopes, and, of whoever may have
// messages signed, what kind of source that is. It does not know HTTP;
// the caller takes the bearer token from the request and maps ErrUnknownToken to 401
// and ErrScope to 403.
//
// Invariants: the file holds no token, only hashes of them, and is refused when
// others may read it; all entries are compared in constant time; a change of
// the file takes effect without a restart, and a broken change leaves the last
// good entries in force and is reported; no error holds a token or a hash.
package auth
