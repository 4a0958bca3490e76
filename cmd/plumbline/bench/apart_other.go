//go:build !linux

package bench

// keepApart does nothing: only file systems of Linux have such a hint.
func keepApart(string) {}
