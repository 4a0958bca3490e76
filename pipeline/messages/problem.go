package messages

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/schema"
)

// ProblemOf returns the answer that an error is, nil where only the service can
// know what is wrong.
func ProblemOf(err error) *problem.Problem {
	var p *problem.Problem
	errors.As(err, &p)
	return p
}

// The words of a Problem. A message that is refused has its reason for a word.
const (
	WordInvalid  = "invalid_request" // 400: see the faults
	WordNotHuman = "not_human"       // 403: only a person can approve
	WordUnknown  = "unknown_message" // 404: nothing to approve
	WordDecided  = "decided"         // 409: what is to be approved was accepted, or approved, before
)

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
	p := problem.New(http.StatusBadRequest, WordInvalid, "it is not valid: see the faults")
	p.Faults = f
	return p
}
