package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/plumbline/plumbline/pipeline/transport"
	"github.com/plumbline/plumbline/schema"
)

// ErrInsecure is wrapped if a connection is not allowed for handshake messages:
// neither TLS 1.3 nor within this machine (AAP section 9.4).
var ErrInsecure = transport.ErrInsecure

// Problem is a service's refusal of a message (docs/HANDSHAKE.md lists the codes of Word).
type Problem struct {
	Code    int            `json:"-"`     // the HTTP status code
	Word    string         `json:"error"` // "replayed", "stale", "no_card", …
	Message string         `json:"message"`
	Faults  []schema.Fault `json:"faults"`

	// RetryAfter is how long to wait before the same request is repeated, zero if the
	// service does not state it.
	RetryAfter time.Duration `json:"-"`
}

// Error returns the message, the codes and the faults.
func (p *Problem) Error() string {
	text := fmt.Sprintf("%s (%d %s)", p.Message, p.Code, p.Word)
	for _, fault := range p.Faults {
		text += fmt.Sprintf("; %s: %s", fault.Pointer, fault.Message)
	}
	return text
}

// ReadProblem reads the body of a refusal, for implementations of Transport. For a body in
// another form it returns a Problem with the status code alone.
func ReadProblem(code int, body []byte) *Problem {
	p := new(Problem)
	if err := json.Unmarshal(body, p); err != nil || p.Message == "" {
		p = &Problem{Message: "the service answers " + http.StatusText(code)}
	}
	p.Code = code
	return p
}

// refusal reads a refusal over HTTP.
func refusal(response *http.Response, body []byte) *Problem {
	p := ReadProblem(response.StatusCode, body)
	if seconds, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 16); err == nil {
		p.RetryAfter = time.Duration(seconds) * time.Second
	}
	return p
}
