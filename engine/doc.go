// Package engine runs a real ClickHouse server on loopback, as a child process
// of this one, and returns the addresses to connect to.
//
// It owns the server's program (located, or installed once into the user's cache
// with a pinned version and checksum), its configuration, its users and
// their generated passwords, its ports and its life. It owns no table. Clients
// connect with clickhouse-go over a DSN, as to any other ClickHouse server.
//
// Invariants: a data directory has one engine; nothing listens beyond loopback,
// and every connection needs a password; ports and passwords stay the same when
// the server crashes and is restarted; memory stays below a stated bound; no user of
// the pipeline's services may alter or delete a row; a server whose writes failed is
// restarted before it can remove source parts whose merged copy was not written.
package engine
