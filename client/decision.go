package client

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/schema"
)

// Decision is what a Recorder makes a trace of (AAP sections 5.3 to 5.7). Only Action is
// required. Values of type any may be anything: what JSON cannot hold becomes text.
type Decision struct {
	Action     string            // action.name
	Type       schema.ActionType // empty: execute
	Category   schema.Category   // empty: bounded
	Target     *Target
	Parameters map[string]any

	Alternatives []Alternative // empty: the action is the only one
	Selected     string        // an OptionID of Alternatives; empty: the only one
	Reasoning    string
	Values       []string // the values applied
	Confidence   *float64 // 0..1

	Escalation *Escalation
	Execution  *Execution

	Turn          *int64   // context.conversation_turn
	PriorTraceIDs []string // context.prior_trace_ids
	Environment   map[string]any
	Metadata      map[string]any // further members of context.metadata

	Timestamp time.Time // zero: now
	TraceID   string    // empty: a new UUID
}

// Target is the resource that an action affects.
type Target struct {
	Type       string `json:"type"`
	Identifier string `json:"identifier"`
}

// Alternative is one option that the agent considered.
type Alternative struct {
	OptionID       string             `json:"option_id"`
	Description    string             `json:"description"`
	Score          *float64           `json:"score,omitzero"` // 0..1
	ScoringFactors map[string]float64 `json:"scoring_factors,omitempty"`
	Flags          []string           `json:"flags,omitempty"`
}

// Escalation is the escalation block (AAP section 5.6): the triggers were evaluated, with this
// result.
type Escalation struct {
	Required        bool
	Reason          string
	ID              string
	Status          schema.EscalationStatus
	TriggersChecked []TriggerCheck
	Response        *PrincipalResponse
}

// TriggerCheck is the result of one trigger.
type TriggerCheck struct {
	Trigger       string `json:"trigger"`
	Matched       bool   `json:"matched"`
	ValueObserved any    `json:"value_observed,omitzero"`
}

// PrincipalResponse is the principal's answer to an escalation.
type PrincipalResponse struct {
	Decision   string    `json:"decision"`
	Timestamp  time.Time `json:"timestamp,omitzero"`
	Conditions []string  `json:"conditions,omitempty"`
}

// Execution is what the action really did (context.metadata.execution).
type Execution struct {
	ToolName  string
	Inputs    map[string]any
	Outputs   any // nil: none
	CostCents int64
	Error     string
}

// The bounds of a member of parameters or inputs, and of outputs. A larger value is replaced by
// the size and SHA-256 of its JSON.
const (
	maxMemberBytes = 128 << 10
	maxMemberDepth = 32
	maxText        = 4 << 10 // of a value that is only known as text, and of an error

	signatureRoom = 1 << 10 // in a trace that is to be signed
)

// memberBytes are the bounds of a value: the next smaller one if the trace is too large.
var memberBytes = [...]int{maxMemberBytes, 16 << 10, 1 << 10}

// The members of a trace that a recorder writes.
type (
	writtenTrace struct {
		TraceID    string             `json:"trace_id"`
		AgentID    string             `json:"agent_id"`
		CardID     string             `json:"card_id"`
		Timestamp  string             `json:"timestamp"`
		Action     writtenAction      `json:"action"`
		Decision   writtenDecision    `json:"decision"`
		Escalation *writtenEscalation `json:"escalation,omitzero"`
		Context    *writtenContext    `json:"context,omitzero"`
	}
	writtenAction struct {
		Type       schema.ActionType `json:"type"`
		Name       string            `json:"name"`
		Category   schema.Category   `json:"category"`
		Target     *Target           `json:"target,omitzero"`
		Parameters jsontext.Value    `json:"parameters,omitzero"`
	}
	writtenDecision struct {
		Alternatives []Alternative `json:"alternatives_considered"`
		Selected     string        `json:"selected"`
		Reasoning    string        `json:"selection_reasoning"`
		Values       []string      `json:"values_applied"`
		Confidence   *float64      `json:"confidence,omitzero"`
	}
	writtenEscalation struct {
		Evaluated bool                    `json:"evaluated"`
		Triggers  []TriggerCheck          `json:"triggers_checked,omitempty"`
		Required  bool                    `json:"required"`
		Reason    string                  `json:"reason,omitzero"`
		ID        string                  `json:"escalation_id,omitzero"`
		Status    schema.EscalationStatus `json:"escalation_status,omitzero"`
		Response  *PrincipalResponse      `json:"principal_response,omitzero"`
	}
	writtenContext struct {
		SessionID     string         `json:"session_id,omitzero"`
		Turn          *int64         `json:"conversation_turn,omitzero"`
		PriorTraceIDs []string       `json:"prior_trace_ids,omitempty"`
		Environment   jsontext.Value `json:"environment,omitzero"`
		Metadata      jsontext.Value `json:"metadata,omitzero"`
	}
	writtenExecution struct {
		ToolName  string         `json:"tool_name,omitzero"`
		Inputs    jsontext.Value `json:"inputs,omitzero"`
		Outputs   jsontext.Value `json:"outputs,omitzero"`
		CostCents int64          `json:"cost_cents,omitzero"`
		Error     string         `json:"error,omitzero"`
	}
)

// written builds one trace. leftOut collects the names of the values that were too large.
type written struct {
	options json.Options // tolerantJSON
	most    int          // bytes of a value
	leftOut []string
}

// trace returns the bytes of a decision's trace. number is its sequence number, 0 for none.
func (w *written) trace(agentID, cardID, sessionID string, number uint64, d *Decision) ([]byte, error) {
	t := writtenTrace{
		TraceID: d.TraceID, AgentID: agentID, CardID: cardID, Timestamp: d.Timestamp.UTC().Format(time.RFC3339Nano),
		Action: writtenAction{
			Type: cmp.Or(d.Type, schema.ActionExecute), Name: d.Action, Category: cmp.Or(d.Category, schema.CategoryBounded), Target: d.Target,
			Parameters: w.members("parameters", d.Parameters),
		},
		Decision: writtenDecision{Alternatives: d.Alternatives, Selected: d.Selected, Reasoning: d.Reasoning, Values: d.Values, Confidence: d.Confidence},
	}
	if len(d.Alternatives) == 0 {
		t.Decision.Alternatives = []Alternative{{OptionID: d.Action, Description: d.Action}}
	}
	if d.Selected == "" && len(t.Decision.Alternatives) == 1 {
		t.Decision.Selected = t.Decision.Alternatives[0].OptionID
	}
	if e := d.Escalation; e != nil {
		t.Escalation = &writtenEscalation{Evaluated: true, Required: e.Required, Reason: e.Reason, ID: e.ID, Status: e.Status, Response: e.Response}
		for _, check := range e.TriggersChecked {
			if check.ValueObserved != nil {
				check.ValueObserved = w.value("value_observed", check.ValueObserved)
			}
			t.Escalation.Triggers = append(t.Escalation.Triggers, check)
		}
	}
	c := writtenContext{SessionID: sessionID, Turn: d.Turn, PriorTraceIDs: d.PriorTraceIDs, Environment: w.members("environment", d.Environment), Metadata: w.metadata(number, d)}
	if c.SessionID != "" || c.Turn != nil || c.PriorTraceIDs != nil || c.Environment != nil || c.Metadata != nil {
		t.Context = &c
	}
	return json.Marshal(t, w.options)
}

// metadata returns context.metadata, nil if it would be empty.
func (w *written) metadata(number uint64, d *Decision) jsontext.Value {
	all := map[string]any{}
	for name, value := range d.Metadata {
		all[name] = value
	}
	if number > 0 {
		all["sequence_number"] = number
	}
	if e := d.Execution; e != nil {
		x := writtenExecution{ToolName: e.ToolName, Inputs: w.members("inputs", e.Inputs), CostCents: e.CostCents, Error: schema.Clip(e.Error, maxText)}
		if e.Outputs != nil {
			x.Outputs = w.value("outputs", e.Outputs)
		}
		raw, err := json.Marshal(x, w.options)
		if err == nil {
			all["execution"] = whole(raw)
		}
	}
	return w.members("metadata", all)
}

// whole is JSON whose parts were bounded before.
type whole jsontext.Value

// members writes an object, with the names in order. Each member is bounded by itself.
func (w *written) members(block string, all map[string]any) jsontext.Value {
	if len(all) == 0 {
		return nil
	}
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	object := []byte{'{'}
	for i, name := range names {
		if i > 0 {
			object = append(object, ',')
		}
		quoted, err := jsontext.AppendQuote(object, strings.ToValidUTF8(name, "\uFFFD"))
		if err != nil { // the name is valid UTF-8
			panic(err)
		}
		object = append(quoted, ':')
		if raw, ok := all[name].(whole); ok {
			object = append(object, raw...)
		} else {
			object = append(object, w.value(block+"."+name, all[name])...)
		}
	}
	return append(object, '}')
}

// value writes a value of the agent. What has no JSON becomes text; what is too large or too
// deep becomes its size and digest; what panics or contains itself is only marked.
func (w *written) value(name string, value any) (raw jsontext.Value) {
	defer func() {
		if fault := recover(); fault != nil { // of the value's own methods
			w.leftOut = append(w.leftOut, name)
			raw = jsontext.Value(`{"left_out":{"error":"panic"}}`)
		}
	}()
	raw, err := json.Marshal(value, w.options)
	if err != nil && endless(reflect.ValueOf(value), 4*maxMemberDepth) {
		w.leftOut = append(w.leftOut, name)
		return fmt.Appendf(nil, `{"left_out":{"levels":%d}}`, maxMemberDepth)
	}
	if err != nil {
		text, quoteErr := jsontext.AppendQuote(nil, strings.ToValidUTF8(schema.Clip(fmt.Sprint(value), maxText), "\uFFFD"))
		if quoteErr != nil {
			panic(quoteErr) // the text is valid UTF-8
		}
		raw = text
	}
	if depth, _ := schema.Nesting(raw); len(raw) <= w.most && depth <= maxMemberDepth {
		return raw
	}
	w.leftOut = append(w.leftOut, name)
	return fmt.Appendf(nil, `{"left_out":{"bytes":%d,"sha256":"%s"}}`, len(raw), schema.DigestOf(raw))
}

// endless reports whether a value has more levels than some, as one that contains itself has. To
// print it would use up the stack, which ends the process.
func endless(v reflect.Value, levels int) bool {
	if levels == 0 {
		return true
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return endless(v.Elem(), levels-1)
	case reflect.Map:
		for each := v.MapRange(); each.Next(); {
			if endless(each.Value(), levels-1) {
				return true
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if endless(v.Index(i), levels-1) {
				return true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if endless(v.Field(i), levels-1) {
				return true
			}
		}
	}
	return false
}

// maxExact is the largest integer that a 64-bit float holds together with all below it. A
// signature covers no larger number.
const maxExact = 1 << 53

// tolerantJSON returns how values of the agent are written: numbers that JSON or a 64-bit float
// cannot hold become text, half characters the replacement character.
func tolerantJSON() json.Options {
	text := func(encoder *jsontext.Encoder, text string) error { return encoder.WriteToken(jsontext.String(text)) }
	return json.JoinOptions(jsontext.AllowInvalidUTF8(true), json.Deterministic(true), json.WithMarshalers(json.JoinMarshalers(
		json.MarshalToFunc(func(encoder *jsontext.Encoder, f float64) error {
			if !math.IsNaN(f) && !math.IsInf(f, 0) {
				return errors.ErrUnsupported // as usual
			}
			return text(encoder, strconv.FormatFloat(f, 'g', -1, 64))
		}),
		json.MarshalToFunc(func(encoder *jsontext.Encoder, n int64) error {
			if n >= -maxExact && n <= maxExact {
				return errors.ErrUnsupported
			}
			return text(encoder, strconv.FormatInt(n, 10))
		}),
		json.MarshalToFunc(func(encoder *jsontext.Encoder, n int) error {
			if n >= -maxExact && n <= maxExact {
				return errors.ErrUnsupported
			}
			return text(encoder, strconv.Itoa(n))
		}),
		json.MarshalToFunc(func(encoder *jsontext.Encoder, n uint64) error {
			if n <= maxExact {
				return errors.ErrUnsupported
			}
			return text(encoder, strconv.FormatUint(n, 10))
		}),
		json.MarshalToFunc(func(encoder *jsontext.Encoder, d time.Duration) error { return text(encoder, d.String()) }),
		json.MarshalToFunc(func(encoder *jsontext.Encoder, err error) error { return text(encoder, err.Error()) }),
	)))
}
