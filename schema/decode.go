package schema

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Decoder admits one trace after the other and reuses its memory. It is not safe for concurrent
// use; the zero value is ready.
type Decoder struct {
	reader

	Warn     bool // also look for ignored members (Warnings)
	warnings []Warning
}

// Admit decodes and validates one trace. It is Decoder.Admit for callers that admit few traces.
// An empty agent means that neither a subject nor a credential names one.
func Admit(agent string, raw []byte) (*Trace, error) {
	t := new(Trace)
	if err := new(Decoder).Admit(t, agent, raw); err != nil {
		return nil, err
	}
	return t, nil
}

// Admit reads raw into t (AAP section 5). White space around the record is allowed. On success
// t.Raw is the record and t.Digest its SHA-256; strings and raw values of t alias raw. The
// error is a *Refusal with every fault found.
func (d *Decoder) Admit(t *Trace, agent string, raw []byte) error {
	raw = trimSpace(raw)
	if len(raw) > MaxTraceBytes {
		return refuse(ReasonTooLarge, "%d bytes, a trace may have %d", len(raw), MaxTraceBytes)
	}
	if !d.read(t, raw, true) {
		d.read(t, raw, false)
	}
	if err := d.refusal(ReasonInvalidTrace); err != nil {
		return err
	}
	if agent != "" && agent != t.AgentID {
		return &Refusal{ReasonForeignAgent, []Fault{{"/agent_id",
			fmt.Sprintf("%q is not the agent of this subject or credential (%q)", t.AgentID, agent)}}}
	}
	t.Raw, t.Digest = raw, DigestOf(raw)
	return nil
}

// read reads the record into t and collects its faults. It returns false if the record must be
// read without scanning.
func (d *Decoder) read(t *Trace, raw []byte, scanning bool) bool {
	t.reset()
	d.scanning = scanning
	d.reset(raw)
	d.warnings = d.warnings[:0]
	d.trace(t)
	d.end()
	return !errors.Is(d.err, errDoubt)
}

// refusal returns the faults found as an error, or nil where there are none.
func (r *reader) refusal(reason string) error {
	if len(r.faults) == 0 {
		return nil
	}
	if r.err != nil {
		reason = ReasonInvalidJSON
	}
	faults := slices.Clone(r.faults)
	if r.beyond > 0 {
		faults = append(faults, Fault{Message: fmt.Sprintf("and %d more faults", r.beyond)})
	}
	return &Refusal{Reason: reason, Faults: faults}
}

// reset empties t and keeps the capacity of its slices.
func (t *Trace) reset() {
	alternatives := t.Decision.Alternatives[:0]
	values, prior := t.Decision.ValuesApplied[:0], t.Context.PriorTraceIDs[:0]
	checked := t.Escalation.TriggersChecked[:0]
	parameters, metadata := t.Action.Parameters[:0], t.Context.Metadata[:0]
	environment, members := t.Context.Environment[:0], t.Context.Members[:0]
	others := t.Others[:0]
	*t = Trace{}
	t.Decision.Alternatives, t.Decision.ValuesApplied = alternatives, values
	t.Escalation.TriggersChecked = checked
	t.Action.Parameters = parameters
	t.Context.PriorTraceIDs, t.Context.Metadata = prior, metadata
	t.Context.Environment, t.Context.Members = environment, members
	t.Others = others
}

// trace reads the record (AAP section 5.3).
func (d *Decoder) trace(t *Trace) {
	if !d.enter('{', "an object") {
		return
	}
	var seen present
	for d.more() {
		switch name := d.name(); name {
		case "trace_id":
			t.TraceID = d.identifier()
			seen |= hasTraceID
		case "agent_id":
			t.AgentID = d.identifier()
			seen |= hasAgentID
		case "card_id":
			t.CardID = d.identifier()
			seen |= hasCardID
		case "timestamp":
			t.Timestamp = d.eventTime()
			seen |= hasTimestamp
		case "action":
			d.action(&t.Action)
			seen |= hasAction
		case "decision":
			d.decision(&t.Decision)
			seen |= hasDecision
		case "escalation":
			d.escalation(&t.Escalation)
		case "context":
			d.context(&t.Context)
		default:
			t.Others = append(t.Others, Member{Name: name, Value: d.opaque()})
			if name != "signature" {
				d.ignored(name, traceBlock)
			}
		}
	}
	d.missing("", seen, traceMembers)
}

// present is the set of the required members that an object has.
type present uint8

const (
	hasTraceID present = 1 << iota
	hasAgentID
	hasCardID
	hasTimestamp
	hasAction
	hasDecision
)

const (
	hasType present = 1 << iota
	hasName
	hasCategory
)

const (
	hasAlternatives present = 1 << iota
	hasSelected
	hasReasoning
	hasValues
)

const (
	hasOptionID present = 1 << iota
	hasDescription
)

// The required members of each block, in the order of their bits.
var (
	traceMembers       = []string{"trace_id", "agent_id", "card_id", "timestamp", "action", "decision"}
	actionMembers      = []string{"type", "name", "category"}
	decisionMembers    = []string{"alternatives_considered", "selected", "selection_reasoning", "values_applied"}
	alternativeMembers = []string{"option_id", "description"}
)

// missing reports the required members that the object just read lacks.
func (d *Decoder) missing(object string, seen present, required []string) {
	if d.err != nil {
		return
	}
	for i, name := range required {
		if seen&(1<<i) == 0 {
			d.faultAt(object+"/"+name, "is missing (required)")
		}
	}
}

// span returns the raw text of the value that began at byte from and was just
// read, without the white space and punctuation before it.
func (r *reader) span(from int) []byte {
	text := r.raw[from:r.offset()]
	for i, c := range text {
		switch c {
		case ' ', '\t', '\r', '\n', ':', ',':
			continue
		}
		return text[i:]
	}
	return nil
}

// eventTime reads an RFC 3339 time with a zone, inside EarliestTime..LatestTime.
func (r *reader) eventTime() time.Time {
	at := r.timestamp()
	if !at.IsZero() && (at.Before(EarliestTime) || at.After(LatestTime)) {
		r.fault("%s is outside %d..%d", at.Format(time.RFC3339), EarliestTime.Year(), LatestTime.Year())
	}
	return at
}

// timestamp reads an RFC 3339 time with a zone and returns it in UTC. It returns the zero time
// for any other value.
func (r *reader) timestamp() time.Time {
	faults := len(r.faults)
	text := r.text()
	if r.err != nil || len(r.faults) > faults {
		return time.Time{}
	}
	at, err := ParseTime(text)
	if err != nil {
		r.fault("%q is %v", clip(text), err)
		return time.Time{}
	}
	switch {
	case at.IsZero():
		r.fault("%q is the zero time, which means absent", clip(text))
	case at.Year() < 0 || at.Year() > 9999:
		r.fault("%q: in UTC its year is outside 0..9999", clip(text)) // RFC 3339 cannot write it
		return time.Time{}
	}
	return at
}

// oneOf reports a fault unless the string just read is one of the allowed ones.
func oneOf[T ~string](r *reader, text string, allowed ...T) T {
	if r.err == nil && !slices.Contains(allowed, T(text)) {
		names := make([]string, len(allowed))
		for i, a := range allowed {
			names[i] = string(a)
		}
		r.fault("%q is none of %s", clip(text), strings.Join(names, ", "))
	}
	return T(text)
}
