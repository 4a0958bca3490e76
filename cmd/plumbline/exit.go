package main

import (
	"errors"
	"fmt"

	"github.com/plumbline/plumbline/local"
	"github.com/plumbline/plumbline/pipeline/run"
)

// The exit codes of every command.
const (
	exitGood  = run.ExitGood
	exitBad   = run.ExitFailed // found bad, or failed
	exitUsage = run.ExitUsage  // wrong command line, or nothing to read
)

var (
	// errFoundBad ends a command whose output has told what is bad.
	errFoundBad = errors.New("found bad")
	// errNothing marks that there is nothing to read.
	errNothing = errors.New("nothing to read")
)

// usageError is a command line that cannot be obeyed.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// Unwrap gives the reason.
func (e usageError) Unwrap() error { return e.error }

func exitCode(err error) int {
	var usage usageError
	switch {
	case err == nil:
		return exitGood
	case errors.Is(err, errInterrupted): // whatever could not be read for it
		return exitBad
	case errors.As(err, &usage), errors.Is(err, errNothing), errors.Is(err, run.ErrUsage), errors.Is(err, local.ErrNotRunning):
		return exitUsage
	default:
		return exitBad
	}
}
