// Package locked has the text that a test gives to code of several goroutines, such as a log, and reads while they
// write.
package locked

import (
	"bytes"
	"sync"
)

// Text is what was written to it. The zero value is empty.
type Text struct {
	mu      sync.Mutex
	written bytes.Buffer
}

// Write is io.Writer's. It returns no error.
func (t *Text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.written.Write(p)
}

// String returns all that was written.
func (t *Text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.written.String()
}
