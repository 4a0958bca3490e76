// Package ingest is the stage that agents publish their traces to: POST /v1/traces, as NDJSON or one
// by one. Its service also mounts the other routes (package api).
//
// It owns the listener, the configuration and life of the service, the order admit, commit,
// answer, and the outcome of each line. It does not own the checks before a handler
// (pipeline/request), the rules of admission (package schema), the rights of tokens
// (pipeline/auth) or group commit (pipeline/stream).
//
// ingest.go has the path of a request, from its body to its answer. Imports go one way: ingest to
// api, and both to request.
//
// Invariants: a line answered "accepted" or "duplicate" is durable in stream TRACES; a bad line
// never affects other lines; the lines of a request are committed in their order; it is always
// safe to repeat a request; the memory for clients is limited, whatever they send.
package ingest
