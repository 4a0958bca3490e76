//go:build !linux

package integration_test

// diskScenarios returns nil: they need disks that only Linux has.
func diskScenarios() []scenario { return nil }
