package audit

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/plumbline/plumbline/schema"
)

// Member is the name of the citation within context.metadata.
const Member = "message_auth"

// MaxResults bounds the tool results that one trace may cite.
const MaxResults = 32

// Citation is context.metadata.message_auth: the message and the results that the trace relies
// on.
type Citation struct {
	MessageID string   `json:"message_id"`             // the message that asked for the action
	CallID    string   `json:"call_id,omitempty"`      // the decision that permitted the tool call; optional
	Results   []Result `json:"tool_results,omitempty"` // results that its claims rely on; optional
}

// Result cites an authenticated tool result of the trace's session.
type Result struct {
	ToolName string `json:"tool_name"`
	Seq      uint64 `json:"seq"`
	SHA256   string `json:"sha256"` // of its canonical form (RFC 8785), 64 lower-case hexadecimal digits

	// Claims are the numbers of the claims tagged [G] that rely on the result: 1 is the first
	// [G] of the selection reasoning. It is optional where there is only one such claim.
	Claims []int `json:"claims,omitempty"`
}

// ReadCitation reads the citation of a trace; nil where it has none. The error says why the
// member is not a citation.
func ReadCitation(t *schema.Trace) (*Citation, error) {
	raw, there := t.Context.Metadata.Get(Member)
	if !there {
		return nil, nil
	}
	c := new(Citation)
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, err
	}
	if c.MessageID == "" {
		return nil, errors.New("message_id is missing")
	}
	if len(c.Results) > MaxResults {
		return nil, fmt.Errorf("%d tool_results, a trace may cite %d", len(c.Results), MaxResults)
	}
	return c, nil
}
