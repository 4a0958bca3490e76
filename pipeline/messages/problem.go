package messages

import (
	"fmt"
	"net/http"

	"github.com/plumbline/plumbline/schema"
)

// Problem is the answer to a request that cannot be decided as it is.
type Problem struct {
	Code    int            `json:"-"`       // HTTP status
	Word    string         `json:"error"`   // for programs
	Message string         `json:"message"` // for people: what is wrong and what to do
	Faults  []schema.Fault `json:"faults,omitempty"`
}

// The words of a Problem. A message that is refused has its reason for a word.
const (
	WordInvalid  = "invalid_request" // 400: see the faults
	WordNotHuman = "not_human"       // 403: only a person can approve
	WordUnknown  = "unknown_message" // 404: nothing to approve
	WordDecided  = "decided"         // 409: what is to be approved was accepted, or approved, before
)

// Error is the message.
func (p *Problem) Error() string { return p.Message }

func problemf(code int, word, format string, args ...any) *Problem {
	return &Problem{Code: code, Word: word, Message: fmt.Sprintf(format, args...)}
}

// faults collects what is wrong with a request.
type faults []schema.Fault

func (f *faults) check(ok bool, pointer, format string, args ...any) {
	if !ok {
		*f = append(*f, schema.Fault{Pointer: pointer, Message: fmt.Sprintf(format, args...)})
	}
}

// id demands an id within the limits.
func (f *faults) id(pointer, value string) {
	f.check(value != "", pointer, "is required and missing")
	f.check(len(value) <= schema.MaxIDBytes, pointer, "%d bytes, at most %d are allowed", len(value), schema.MaxIDBytes)
}

func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	p := problemf(http.StatusBadRequest, WordInvalid, "it is not valid: see the faults")
	p.Faults = f
	return p
}
