// Package engine runs a real ClickHouse server on loopback, as a child process
// of this one, and says how to connect to it.
//
// It owns the server's program (found, or installed once into the user's cache
// with a pinned version and checksum), its configuration, its three users and
// their generated passwords, its ports and its life. It owns no table: whoever
// connects speaks clickhouse-go over a DSN and cannot tell this server from any
// other.
//
// Invariants: one engine for a data directory; nothing listens beyond loopback,
// and nobody is answered without a password; ports and passwords stay the same when
// the server crashes and is restarted; memory stays below a stated bound; no user of
// the pipeline's services may alter or delete a row; a server whose writes failed is
// started again before it removes what it has not written again.
package engine
