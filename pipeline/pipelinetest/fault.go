package pipelinetest

import (
	"context"
	"errors"
	"sync"
)

// ErrInjected is the error of a step under a Fault.
var ErrInjected = errors.New("injected by the test")

// Fault makes one external step of a stage fail once, before or after it is applied. With Crash
// it also ends the context of the process, which simulates a crash.
type Fault struct {
	Step    string
	Applied bool
	Crash   context.CancelFunc

	mu  sync.Mutex
	hit bool
}

// Met reports whether the step was reached.
func (f *Fault) Met() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hit
}

// Around runs a step under the fault.
func (f *Fault) Around(step string, do func() error) error {
	f.mu.Lock()
	strikes := step == f.Step && !f.hit
	f.hit = f.hit || strikes
	f.mu.Unlock()
	if !strikes {
		return do()
	}
	if f.Applied {
		if err := do(); err != nil { // it strikes at the next attempt
			f.mu.Lock()
			f.hit = false
			f.mu.Unlock()
			return err
		}
	}
	if f.Crash != nil {
		f.Crash()
	}
	return ErrInjected
}
