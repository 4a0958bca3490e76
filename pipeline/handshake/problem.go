package handshake

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/transport"
	"github.com/plumbline/plumbline/schema"
)

// Problem is the answer to a message that was not answered otherwise: the same
// JSON over HTTP and NATS.
type Problem struct {
	Code    int            `json:"-"`       // HTTP status
	Word    string         `json:"error"`   // for programs
	Message string         `json:"message"` // for people: what is wrong and what to do
	Faults  []schema.Fault `json:"faults,omitempty"`
}

// The words of a Problem, besides the reasons of a schema.Refusal.
const (
	WordInsecure    = "insecure"        // 426: no TLS 1.3
	WordForbidden   = "forbidden"       // 403: not the requester's to send
	WordNotAsked    = "unexpected"      // 400: a message that responders send
	WordStale       = "stale"           // 400: beyond the window of section 9.4
	WordReplayed    = "replayed"        // 409: answered before
	WordNoRequest   = "unknown_request" // 409: a check without its request
	WordNoCard      = "no_card"         // 404: the responder has no current card
	WordSignature   = "bad_signature"   // 400: the message's own signature is wrong
	WordTooLarge    = "too_large"       // 413
	WordUnavailable = "unavailable"     // 503
	WordInternal    = "internal"        // 500
)

// Error is the message.
func (p *Problem) Error() string { return p.Message }

func problemf(code int, word, format string, args ...any) *Problem {
	return &Problem{Code: code, Word: word, Message: fmt.Sprintf(format, args...)}
}

// refusal says what is wrong with a message that cannot be read.
func refusal(err error) error {
	var refused *schema.Refusal
	if !errors.As(err, &refused) {
		return err
	}
	code := http.StatusBadRequest
	if refused.Reason == schema.ReasonTooLarge {
		code = http.StatusRequestEntityTooLarge
	}
	p := problemf(code, refused.Reason, "it is not valid: see the faults")
	p.Faults = refused.Faults
	return p
}

// ProblemOf says what an error of Answer means to the requester; nil where only
// the service can know.
func ProblemOf(err error) *Problem {
	var p *Problem
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, transport.ErrInsecure): // it says what to configure
		return problemf(http.StatusUpgradeRequired, WordInsecure, "%v", err)
	case errors.Is(err, stream.ErrUnavailable):
		return problemf(http.StatusServiceUnavailable, WordUnavailable,
			"the broker does not take it now: begin again a little later, with a new request_id")
	case errors.Is(err, stream.ErrTooLarge):
		return problemf(http.StatusRequestEntityTooLarge, WordTooLarge, "the result is too large to be kept: begin again with fewer values")
	}
	return nil
}
