// Package durable writes files that survive a loss of power. It syncs both the contents of a file
// and the directory entry with its name before a call returns. It also has functions for such
// files: reading plain files only, a lock that names its holder (the only file lock of this
// repository), and safe file names made from untrusted text.
//
// It knows nothing of what it writes. It relies on the file system to honour fsync. A disk that
// acknowledges a flush without writing breaks every guarantee made here.
//
// Invariants: a name either does not exist, or its file is complete. After a failed sync nothing
// is assumed about the file, and the caller writes it again under its own name: a failed fsync
// may drop the dirty pages, and the next one would then succeed.
package durable
