package handshake

import (
	"errors"
	"net/http"

	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/transport"
	"github.com/plumbline/plumbline/schema"
)

// The words of a Problem, in addition to the reasons of a schema.Refusal.
const (
	WordInsecure    = "insecure"        // 426: the connection is not TLS 1.3
	WordForbidden   = "forbidden"       // 403: the requester may not send it
	WordNotAsked    = "unexpected"      // 400: only responders send this message
	WordStale       = "stale"           // 400: outside the window of section 9.4
	WordReplayed    = "replayed"        // 409: it was answered before
	WordNoRequest   = "unknown_request" // 409: a check without its request
	WordNoCard      = "no_card"         // 404: the responder has no current card
	WordSignature   = "bad_signature"   // 400: the message's own signature is wrong
	WordTooLarge    = "too_large"       // 413
	WordUnavailable = "unavailable"     // 503
	WordInternal    = "internal"        // 500
)

// problemIn returns the problem for the sender of a message that cannot be decoded.
func problemIn(err error) error {
	var refused *schema.Refusal
	if !errors.As(err, &refused) {
		return err
	}
	p := problem.Invalid(refused.Reason, refused.Faults...)
	if refused.Reason == schema.ReasonTooLarge {
		p.Code = http.StatusRequestEntityTooLarge
	}
	return p
}

// ProblemOf returns the problem for the requester in an error of Answer. It returns nil for an
// error that concerns only the service.
func ProblemOf(err error) *problem.Problem {
	var p *problem.Problem
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, transport.ErrInsecure): // the error says what to configure
		return problem.New(http.StatusUpgradeRequired, WordInsecure, "%v", err)
	case errors.Is(err, stream.ErrUnavailable):
		return problem.New(http.StatusServiceUnavailable, WordUnavailable,
			"the broker is unavailable: begin again a little later, with a new request_id")
	case errors.Is(err, keyring.ErrEarly), errors.Is(err, keyring.ErrLate): // the error says what to do
		return problem.New(http.StatusServiceUnavailable, WordUnavailable,
			"the service cannot sign answers now: %v; begin again after that, with a new request_id", err)
	case errors.Is(err, stream.ErrTooLarge):
		return problem.New(http.StatusRequestEntityTooLarge, WordTooLarge, "the result is too large to store: begin again with fewer values")
	}
	return nil
}
