// Package problem is the answer to a request that was not done: the same JSON for
// whoever is asked, over HTTP and NATS.
//
// It owns the form, and the answer to requests that no route takes. The other words
// are those of who answers; how it travels is the business of who serves it.
package problem

import (
	"fmt"

	"github.com/plumbline/plumbline/schema"
)

// Problem is such an answer.
type Problem struct {
	Code    int            `json:"-"`       // HTTP status
	Word    string         `json:"error"`   // for programs
	Message string         `json:"message"` // for people: what is wrong and what to do
	Faults  []schema.Fault `json:"faults,omitempty"`

	allow string // methods of the address, where the request's is none of them
}

// Error is the message.
func (p *Problem) Error() string { return p.Message }

// New returns a problem without faults.
func New(code int, word, format string, args ...any) *Problem {
	return &Problem{Code: code, Word: word, Message: fmt.Sprintf(format, args...)}
}
