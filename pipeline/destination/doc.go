// Package destination copies sealed bundles, and the files next to them, to places outside the
// bundle directory.
//
// It owns the list of copies that are not made yet (package outbox), and the requirements on a
// destination. It does not own the destinations: stream.Objects is the broker's object store,
// package s3 a store that speaks S3.
//
// Invariants: the bundle directory is the evidence, and sealing never waits for a copy.
// Everything that is sealed while a destination is configured gets there, after crashes and
// outages, too; a new destination receives everything that was sealed before. Bytes that differ
// from those sealed are not copied, and nothing at a destination is overwritten.
package destination
