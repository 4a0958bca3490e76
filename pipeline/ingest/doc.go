// Package ingest is the stage that agents publish to over HTTP: traces as
// NDJSON, Alignment Cards, and requests to seal a session.
//
// It owns the routes, what a request may cost, the order admit, commit, answer,
// and the outcome of each line. It does not own the rules of admission (package
// schema), who may speak for whom (pipeline/auth), group commit (pipeline/stream)
// nor the registry of cards (pipeline/cards).
//
// Invariants: a line answered "accepted" or "duplicate" is durable in stream
// TRACES; a bad line never touches its neighbours; the lines of a request are
// committed in their order; the same request again is always right; whatever
// clients send, the memory for it is bounded.
package ingest
