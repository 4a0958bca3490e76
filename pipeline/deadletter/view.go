package deadletter

import (
	"encoding/json"
	"time"

	"github.com/plumbline/plumbline/aivs/redact"
	"github.com/plumbline/plumbline/pipeline/otel"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// View is a dead letter for display: without its bytes, and with redacted texts.
type View struct {
	Digest   schema.Digest  `json:"digest"` // of the letter's bytes; other commands identify the letter by it
	Received time.Time      `json:"received_at"`
	Stage    string         `json:"stage"`
	Reason   string         `json:"reason"`
	AgentID  string         `json:"agent_id"`
	TraceID  string         `json:"trace_id"`
	Subject  string         `json:"subject"`
	Sequence uint64         `json:"origin_sequence"`
	State    string         `json:"state"` // open, resolved or replayed; "dropped" is what earlier versions called resolved
	MarkedBy string         `json:"marked_by,omitempty"`
	Note     string         `json:"note,omitempty"`
	Faults   []schema.Fault `json:"faults"`
}

// ViewOf returns a letter for display.
func ViewOf(l *store.MarkedLetter) *View {
	v := &View{
		Digest: l.Digest, Received: l.Received.UTC(), Stage: l.Stage, Reason: l.Reason, AgentID: l.AgentID,
		TraceID: HideSecrets(l.TraceID), Subject: l.Subject, Sequence: l.OriginSequence, State: "open", Faults: []schema.Fault{},
	}
	if l.Handled() {
		v.State, v.MarkedBy, v.Note = l.Mark, l.MarkedBy, l.Note
	}
	for i := range l.Pointers {
		v.Faults = append(v.Faults, schema.Fault{Pointer: HideSecrets(l.Pointers[i]), Message: HideSecrets(l.Messages[i])})
	}
	return v
}

// HideSecrets redacts a text that may repeat a part of the letter.
func HideSecrets(text string) string {
	hidden, _ := redact.AllRules.Text(text)
	return hidden
}

// Content is a letter with its decoded content, redacted.
type Content struct {
	*View
	Bytes      int             `json:"bytes"`
	Redactions int             `json:"redactions"`
	Record     json.RawMessage `json:"record"`           // redacted; null where the bytes are no JSON
	Hidden     string          `json:"hidden,omitempty"` // why there is no record
}

// ContentOf returns a letter, which was read with its bytes, and its content.
func ContentOf(l *store.MarkedLetter) *Content {
	c := &Content{View: ViewOf(l), Bytes: len(l.Raw)}
	hide := redact.AllRules.Record
	if l.Reason == otel.ReasonUnmapped {
		hide = redact.AllRules.Attributes
	}
	record, redactions, err := hide(l.Raw)
	if err != nil || !json.Valid(record) {
		c.Hidden = "not JSON, so secrets in it cannot be recognized: plumbline dlq show --raw writes it to a file"
	} else {
		c.Record, c.Redactions = record, redactions.Sum()
	}
	return c
}
