//go:build !linux

package integration_test

// diskScenarios are none: only Linux has the disks for them.
func diskScenarios() []scenario { return nil }
