// Package durable writes files that survive a loss of power: file contents and
// the directory entries that name them are both synced before a call returns.
// It also holds what goes with such files: reading none but plain ones, a lock that names its holder, and
// file names made safely from foreign text.
//
// It knows nothing of what it writes. It relies on the file system to honour
// fsync; a disk that lies about its cache breaks every promise made here.
//
// Invariants: a name either does not exist, or its file is complete; after an
// error of a sync nothing is assumed about the file, which the caller writes
// again under its own name (a failed fsync may drop the dirty pages, and the
// next one would then succeed).
package durable
