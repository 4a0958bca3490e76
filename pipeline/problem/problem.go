// Package problem is the answer to a request that failed: the same JSON from every service, over
// HTTP and NATS.
//
// It owns the form, how it is written over HTTP, and the answers to requests without a route. The
// services own the words and the messages.
package problem

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// Problem is the answer to a request that failed: one word for programs, a sentence that says
// what to do, and the faults of the request, if any.
type Problem struct {
	Code    int            `json:"-"` // HTTP status
	Word    string         `json:"error"`
	Message string         `json:"message"`
	Faults  []schema.Fault `json:"faults,omitempty"`

	headers []string // of the answer: name, value, name, value
}

// Error returns the message, so that functions can return a problem as an error.
func (p *Problem) Error() string { return p.Message }

// New returns a problem without faults.
func New(code int, word, format string, args ...any) *Problem {
	return &Problem{Code: code, Word: word, Message: fmt.Sprintf(format, args...)}
}

// WordInvalid is the word of a request that was read and whose content is invalid.
const WordInvalid = "invalid_request"

// Invalid returns a problem of status 400 whose faults say what is wrong.
func Invalid(word string, faults ...schema.Fault) *Problem {
	p := New(http.StatusBadRequest, word, "the request is invalid: see the faults")
	p.Faults = faults
	return p
}

// Unavailable returns a problem of status 503. Its Retry-After is at least a second.
func Unavailable(retryAfter time.Duration, format string, args ...any) *Problem {
	seconds := max(1, int(math.Ceil(retryAfter.Seconds())))
	return New(http.StatusServiceUnavailable, "unavailable", format, args...).With("Retry-After", strconv.Itoa(seconds))
}

// With adds a header to the answer.
func (p *Problem) With(name, value string) *Problem {
	p.headers = append(p.headers, name, value)
	return p
}

// SetHeaders sets the headers of the problem, for an answer in another form.
func (p *Problem) SetHeaders(header http.Header) {
	for i := 0; i < len(p.headers); i += 2 {
		header.Set(p.headers[i], p.headers[i+1])
	}
}

// Write answers with the problem. It returns the status code of the answer.
func (p *Problem) Write(w http.ResponseWriter) int {
	p.SetHeaders(w.Header())
	return WriteJSON(w, p.Code, p)
}

// CodeClientGone is the code in metrics for an answer to a client that has gone.
const CodeClientGone = 499

// WriteJSON answers with a JSON body. It returns the status code of the answer.
func WriteJSON(w http.ResponseWriter, code int, body any) int {
	text, err := json.Marshal(body)
	if err != nil {
		http.Error(w, "encode the answer: "+err.Error(), http.StatusInternalServerError)
		return http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	return WriteText(w, code, append(text, '\n'))
}

// WriteText answers with a body of the media type that the header states. It returns the status
// code of the answer.
func WriteText(w http.ResponseWriter, code int, text []byte) int {
	w.WriteHeader(code)
	if _, err := w.Write(text); err != nil {
		return CodeClientGone
	}
	return code
}

// The words for requests without a route.
const (
	WordNoAddress = "no_such_address"    // 404
	WordNoMethod  = "method_not_allowed" // 405: the header Allow lists the methods
)

// Routed serves mux. It answers a request without a route with a Problem. hint says which
// addresses exist.
func Routed(mux *http.ServeMux, hint string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := Unrouted(mux, r, hint); p != nil {
			p.Write(w)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// Unrouted returns the answer to a request without a route in mux, or nil if there is a route.
func Unrouted(mux *http.ServeMux, r *http.Request, hint string) *Problem {
	handler, pattern := mux.Handler(r)
	if pattern != "" {
		return nil
	}
	plain := answered{header: http.Header{}}
	handler.ServeHTTP(&plain, r)
	if plain.code == http.StatusMethodNotAllowed {
		allow := plain.header.Get("Allow")
		return New(plain.code, WordNoMethod, "this address does not support %s: use %s", r.Method, allow).With("Allow", allow)
	}
	return New(http.StatusNotFound, WordNoAddress, "there is no such address: %s", hint)
}

// answered records how the mux answers, without the text.
type answered struct {
	header http.Header
	code   int
}

func (a *answered) Header() http.Header         { return a.header }
func (a *answered) WriteHeader(code int)        { a.code = code }
func (a *answered) Write(p []byte) (int, error) { return len(p), nil }
