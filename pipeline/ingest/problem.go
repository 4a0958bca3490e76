package ingest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// problem is the answer to a request that failed: one word for programs, a sentence that says
// what to do, and the faults of the request, if any.
type problem struct {
	code    int
	after   time.Duration // when to retry; 0: not without a change
	Word    string        `json:"error"`
	Message string        `json:"message"`

	Faults []schema.Fault `json:"faults,omitempty"`
}

// Error returns the message, so a reader may return a problem as an error.
func (p *problem) Error() string { return p.Message }

func problemf(code int, word, format string, args ...any) *problem {
	return &problem{code: code, Word: word, Message: fmt.Sprintf(format, args...)}
}

// pushBack asks the client to retry after a while, at least a second.
func pushBack(after time.Duration, message string) *problem {
	p := problemf(http.StatusServiceUnavailable, "unavailable", "%s", message)
	p.after = max(after, time.Second)
	return p
}

// setRetryAfter sets the header in whole seconds.
func (p *problem) setRetryAfter(header http.Header) {
	if p.after > 0 {
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.after.Seconds()))))
	}
}

// write answers with the problem and returns its code.
func (p *problem) write(w http.ResponseWriter) int {
	p.setRetryAfter(w.Header())
	return writeJSON(w, p.code, p)
}

func writeJSON(w http.ResponseWriter, code int, body any) int {
	text, err := json.Marshal(body)
	if err != nil {
		http.Error(w, "encode the answer: "+err.Error(), http.StatusInternalServerError)
		return http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	return write(w, code, append(text, '\n'))
}

func write(w http.ResponseWriter, code int, text []byte) int {
	w.WriteHeader(code)
	if _, err := w.Write(text); err != nil {
		return codeClientGone
	}
	return code
}

// codeClientGone is the code in the metrics for an answer to a client that has gone.
const codeClientGone = 499

// bodyProblem converts an error of reading a body to a problem for the client.
func bodyProblem(err error) *problem {
	var known *problem
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &large):
		return tooLarge(large.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return problemf(http.StatusRequestTimeout, "timeout", "the body did not arrive in time: send less in a request")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return problemf(http.StatusBadRequest, "truncated", "the body breaks off: send it again")
	default:
		return problemf(http.StatusBadRequest, "unreadable", "the body cannot be read: %v", err)
	}
}

func tooLarge(limit int64) *problem {
	return problemf(http.StatusRequestEntityTooLarge, "too_large",
		"the body is larger than %d bytes, sent or unpacked: send traces in several requests; a document may have no more", limit)
}

// failure converts an error of the registry or the broker to a problem for the client.
func (s *server) failure(doing string, err error) *problem {
	var refusal *schema.Refusal
	var known *problem
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, cards.ErrChanged):
		return problemf(http.StatusConflict, "changed", "%v", err)
	case errors.As(err, &refusal):
		p := problemf(http.StatusBadRequest, refusal.Reason, "it is not valid: see the faults")
		p.Faults = refusal.Faults
		return p
	case errors.Is(err, keyring.ErrEarly), errors.Is(err, keyring.ErrLate):
		s.env.Log.Error("no key may sign now", "doing", doing, "error", err)
		return pushBack(time.Minute, fmt.Sprintf("nothing is signed here for now: %v; send the same again then", err))
	case errors.Is(err, stream.ErrUnavailable):
		return pushBack(stream.RetryAfter(err), fmt.Sprintf("%v, %s: send the same again a little later", stream.ErrUnavailable, stream.Reason(err)))
	case errors.Is(err, stream.ErrClosed):
		return pushBack(0, "the service is about to stop: send the same to another instance, or a little later")
	default:
		s.env.Log.Error("request failed", "doing", doing, "error", err)
		return problemf(http.StatusInternalServerError, "internal", "it failed here, not with you: the service's log says why")
	}
}
