// Package reading answers questions about stored traces and sealed bundles over HTTP: the query
// endpoint that a card's audit_commitment promises (AAP section 4.7).
//
// It owns the routes GET /v1/traces, /v1/traces/{trace_id}, /v1/bundles and /v1/bundles/{sha256},
// the form of their answers, their cursors and their bounds. It also looks up for ingest where a
// trace was stored before. It does not own the queries (pipeline/store) or the checks before a
// handler (pipeline/request). Ingest mounts it without knowing the database: cmd/ingest and
// package machine put the two together.
//
// Invariants: an answer holds rows of this process's tenant and of the token's agents only,
// whatever the request says; a page is bounded in traces, bytes, time, and rows that the database
// reads; a database that is slow or away costs readers an answer, and publishers nothing: the
// connections, and the requests in progress, are separate and few.
package reading
