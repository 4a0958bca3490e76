// Package publisher is the client of ingest's HTTP interface: it registers,
// reads and revokes cards, publishes traces and asks for the end of sessions.
//
// It owns what is repeated and how often: pushed back (503), the same again after
// the time that the service names; unreachable, after a growing pause. It reads
// no file and knows nothing of what a trace says.
//
// Invariants: the lines of one call are sent in their order; a line is sent again
// only while nothing is known of it, so that "duplicate" means that it was stored
// before this call, or in a request whose answer was lost.
package publisher
