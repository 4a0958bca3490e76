//go:build !unix

package client

// runs reports whether a process may exist: here it is not known, so no owner is considered dead.
func runs(int) bool { return true }
