// Package ingest is the stage that agents publish to over HTTP: traces as NDJSON, Alignment
// Cards, and requests to seal a session. It also serves handshakes, signed messages, AIVS-Micro
// proofs, marks on dead letters, and public cards, revocations, keys and schemas.
//
// It owns the routes, the limits on a request, the order admit, commit, answer, and the outcome
// of each line. It does not own the rules of admission (package schema), the rights of tokens
// (pipeline/auth), group commit (pipeline/stream) or the registry of cards (pipeline/cards).
//
// Invariants: a line answered "accepted" or "duplicate" is durable in stream TRACES; a bad line
// never affects other lines; the lines of a request are committed in their order; it is always
// safe to repeat a request; the memory for clients is limited, whatever they send.
package ingest
