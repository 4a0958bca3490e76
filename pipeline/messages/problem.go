package messages

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/schema"
)

// ProblemOf returns the problem in an error. It returns nil for an error that concerns only the
// service.
func ProblemOf(err error) *problem.Problem {
	var p *problem.Problem
	errors.As(err, &p)
	return p
}

// The words of a Problem. For a refused message the word is the reason.
const (
	WordInvalid  = "invalid_request" // 400: see the faults
	WordNotHuman = "not_human"       // 403: only a person can approve
	WordUnknown  = "unknown_message" // 404: nothing to approve
	WordDecided  = "decided"         // 409: the message was accepted, or approved, before
)

// faults collects the faults of a request.
type faults []schema.Fault

func (f *faults) check(ok bool, pointer, format string, args ...any) {
	if !ok {
		*f = append(*f, schema.Fault{Pointer: pointer, Message: fmt.Sprintf(format, args...)})
	}
}

// id checks that an id is present and within the limits.
func (f *faults) id(pointer, value string) {
	f.check(value != "", pointer, "is missing (required)")
	f.check(len(value) <= schema.MaxIDBytes, pointer, "%d bytes, at most %d are allowed", len(value), schema.MaxIDBytes)
}

func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	p := problem.New(http.StatusBadRequest, WordInvalid, "it is not valid: see the faults")
	p.Faults = f
	return p
}
