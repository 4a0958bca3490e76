// Package anchors keeps what ties sealed bundles to something outside them: the
// transparency log of all bundles, and the time stamps of an authority.
//
// It owns the log's files, the order in which they are written, and what is asked of
// an authority. It does not own the forms (aivs/anchor), when a bundle is sealed
// (pipeline/exporter), nor when an authority is asked again (pipeline/worklist).
//
// Invariants: a leaf is in the log once its checkpoint is on disk, and never leaves
// it; a crash at any step leaves the log before or after. The same leaf appended
// again is the one that is there. A log whose files are not what its checkpoint
// says is not opened. A bundle waits for its stamp on disk, and nothing waits for
// the authority.
package anchors
