//go:build !linux

package engine

// childName is not registered here: the library exists for Linux only, and
// Locate says so before anything is started.
const childName = "engine"
