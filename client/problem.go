package client

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/plumbline/plumbline/pipeline/transport"
	"github.com/plumbline/plumbline/schema"
)

// ErrInsecure is wrapped where a connection is not fit for handshake messages:
// neither TLS 1.3 nor within this machine (AAP section 9.4).
var ErrInsecure = transport.ErrInsecure

// Problem is a service's refusal of a message (docs/HANDSHAKE.md lists the words).
type Problem struct {
	Code    int            `json:"-"`     // as HTTP has it
	Word    string         `json:"error"` // "replayed", "stale", "no_card", …
	Message string         `json:"message"`
	Faults  []schema.Fault `json:"faults"`
}

// Error says what the service said.
func (p *Problem) Error() string {
	text := fmt.Sprintf("%s (%d %s)", p.Message, p.Code, p.Word)
	for _, fault := range p.Faults {
		text += fmt.Sprintf("; %s: %s", fault.Pointer, fault.Message)
	}
	return text
}

// problem reads a refusal; one in another form keeps its code.
func problem(code int, body []byte) *Problem {
	p := new(Problem)
	if err := json.Unmarshal(body, p); err != nil || p.Message == "" {
		p = &Problem{Message: "the service answers " + http.StatusText(code)}
	}
	p.Code = code
	return p
}
