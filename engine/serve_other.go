//go:build !linux

package engine

// childName is not registered here: the library exists for Linux only, and
// Locate reports that before anything is started.
const childName = "engine"
