// Package destination brings copies of sealed bundles, and of what lies beside them,
// to places besides the bundle directory.
//
// It owns the list of copies that are not made yet (package worklist), and what is
// demanded of a place. It does not own the places: stream.Objects is the broker's
// object store, package s3 a store that speaks S3.
//
// Invariants: the bundle directory is the evidence, and sealing never waits for a
// copy. Whatever is sealed while a place is configured gets there, over crashes and
// outages; a place that is new gets all that was sealed before. Bytes that are not
// those that were sealed are not copied, and nothing at a place is written over.
package destination
