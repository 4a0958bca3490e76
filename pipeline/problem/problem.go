// Package problem is the answer to a request that failed: the same JSON for every service, over
// HTTP and NATS.
//
// It owns the form, and the answers to requests without a route. The services own the other words
// and the transport.
package problem

import (
	"fmt"

	"github.com/plumbline/plumbline/schema"
)

// Problem is the answer to a request that failed.
type Problem struct {
	Code    int            `json:"-"`       // HTTP status
	Word    string         `json:"error"`   // for programs
	Message string         `json:"message"` // for people: what is wrong and what to do
	Faults  []schema.Fault `json:"faults,omitempty"`

	allow string // methods of the path, if the request's method is not one of them
}

// Error returns the message.
func (p *Problem) Error() string { return p.Message }

// New returns a problem without faults.
func New(code int, word, format string, args ...any) *Problem {
	return &Problem{Code: code, Word: word, Message: fmt.Sprintf(format, args...)}
}
