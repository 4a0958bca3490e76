//go:build !linux

package integration_test

import "os/exec"

// bind does nothing: only Linux can end a child with its parent.
func bind(*exec.Cmd) {}

// diskScenarios returns nil: they need disks that only Linux has.
func diskScenarios() []scenario { return nil }
