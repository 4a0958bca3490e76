// Package s3 stores copies of bundles in a store that speaks S3. No other package uses minio-go.
//
// It owns how such a store is reached and what is sent: one PUT for each object, which the store
// accepts as a whole or not at all, on the condition that the name is free, with the SHA-256 for
// the store to check. It does not own which files are copied or when (package destination).
//
// Invariants: no object is ever overwritten; a bucket is created only on request; credentials
// come from a file or the environment, and appear in no setting, error or log line.
package s3
