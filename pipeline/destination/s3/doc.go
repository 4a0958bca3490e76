// Package s3 stores copies of bundles in a store that speaks S3. minio-go lives only
// here.
//
// It owns how such a store is reached and what is sent: one PUT an object, which the
// store takes whole or not at all, under the condition that the name is free, with
// the SHA-256 that the store is to check. It does not own which files go there, nor
// when (package destination).
//
// Invariants: no object is ever written over; no bucket is made unless that is
// asked for; credentials come from a file or the environment, and are in no setting,
// error or log line.
package s3
