package main

import (
	"errors"
	"fmt"

	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/service"
)

// The exit codes of every command.
const (
	exitGood  = service.ExitGood
	exitBad   = service.ExitFailed // found faults, or failed
	exitUsage = service.ExitUsage  // wrong command line, or nothing to read
)

var (
	// errFoundBad ends a command whose output has reported the faults.
	errFoundBad = errors.New("found bad")
	// errNothing reports that there is nothing to read.
	errNothing = errors.New("nothing to read")
)

// usageError reports a command line that cannot be executed.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// Unwrap returns the reason.
func (e usageError) Unwrap() error { return e.error }

func exitCode(err error) int {
	var usage usageError
	switch {
	case err == nil:
		return exitGood
	case errors.Is(err, errInterrupted): // takes precedence over the read error that it caused
		return exitBad
	case errors.As(err, &usage), errors.Is(err, errNothing), errors.Is(err, config.ErrUsage), errors.Is(err, machine.ErrNotRunning):
		return exitUsage
	default:
		return exitBad
	}
}
