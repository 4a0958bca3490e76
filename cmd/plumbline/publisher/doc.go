// Package publisher is the client of ingest's HTTP interface: it registers,
// reads and revokes cards, publishes traces and asks for the end of sessions.
//
// It owns the retries. After a 503 it repeats the same request after the time that the
// service states; if the service is unreachable, it retries with growing pauses. It reads
// no file and does not interpret traces.
//
// Invariants: the lines of one call are sent in their order; a line is sent again
// only while its outcome is unknown. So "duplicate" means that the line was stored
// before this call, or by a request whose answer was lost.
package publisher
