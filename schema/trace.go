package schema

import (
	"strings"
	"time"
)

// ActionType is the kind of an action (AAP section 5.4).
type ActionType string

// The four action types of AAP section 5.4.
const (
	ActionRecommend ActionType = "recommend"
	ActionExecute   ActionType = "execute"
	ActionEscalate  ActionType = "escalate"
	ActionDeny      ActionType = "deny"
)

// Category is the relation of an action to the autonomy envelope (AAP section 5.4).
type Category string

// The three categories of AAP section 5.4.
const (
	CategoryBounded    Category = "bounded"
	CategoryEscalation Category = "escalation_trigger"
	CategoryForbidden  Category = "forbidden"
)

// EscalationStatus is the outcome of an escalation (AAP section 5.6). It is empty where the
// trace does not say.
type EscalationStatus string

// The four statuses of AAP section 5.6.
const (
	EscalationPending  EscalationStatus = "pending"
	EscalationApproved EscalationStatus = "approved"
	EscalationDenied   EscalationStatus = "denied"
	EscalationTimeout  EscalationStatus = "timeout"
)

// Member is one member of a JSON object. Value is raw JSON without surrounding
// white space; it aliases the record it was read from.
type Member struct {
	Name  string
	Value []byte
}

// Members is a JSON object with names of the publisher's choice, in order of appearance. It
// replaces a map[string]any.
type Members []Member

// Get returns the raw value of a member, and reports whether there is one.
func (m Members) Get(name string) ([]byte, bool) {
	for i := range m {
		if m[i].Name == name {
			return m[i].Value, true
		}
	}
	return nil, false
}

// Trace is one AP-Trace (AAP section 5.3): one decision of one agent. A Trace can be reused for
// decoding; its slices keep their capacity.
type Trace struct {
	TraceID   string
	AgentID   string
	CardID    string
	Timestamp time.Time // event time, UTC; within EarliestTime..LatestTime

	Action     Action
	Decision   Decision
	Escalation Escalation
	Context    Context
	Others     Members // top-level members that the specification does not name

	Raw    []byte // the evidence: the bytes received, opening to closing brace
	Digest Digest // SHA-256 of Raw
}

// Action is the action block (AAP section 5.4).
type Action struct {
	Type       ActionType
	Name       string
	Category   Category
	Target     Target  // zero when absent
	Parameters Members // nil when absent
}

// Target is the resource that an action affects.
type Target struct {
	Type       string
	Identifier string
}

// Decision is the decision block (AAP section 5.5).
type Decision struct {
	Alternatives  []Alternative // at least one
	Selected      string        // an OptionID of Alternatives
	Reasoning     string        // selection_reasoning
	ValuesApplied []string
	Confidence    float64 // 0..1; meaningful when HasConfidence
	HasConfidence bool
}

// SelectedAlternative returns the alternative that Selected names, or nil.
func (d *Decision) SelectedAlternative() *Alternative {
	for i := range d.Alternatives {
		if d.Alternatives[i].OptionID == d.Selected {
			return &d.Alternatives[i]
		}
	}
	return nil
}

// Alternative is one option that the agent considered (AAP section 5.5).
type Alternative struct {
	OptionID       string
	Description    string
	Score          float64 // 0..1; meaningful when HasScore
	HasScore       bool
	ScoringFactors Members // raw numbers by name; nil when absent
	Flags          []string
}

// Escalation is the escalation block (AAP section 5.6). It is the zero value where the block is
// absent (Present is false).
type Escalation struct {
	Present         bool
	Evaluated       bool
	TriggersChecked []TriggerCheck
	Required        bool
	Reason          string
	EscalationID    string
	Status          EscalationStatus
	Response        PrincipalResponse
}

// Reports reports whether the trace says that its escalation has this outcome: by its status or
// by the principal's decision.
func (e *Escalation) Reports(outcome EscalationStatus) bool {
	return e.Status == outcome || strings.EqualFold(e.Response.Decision, string(outcome))
}

// TriggerCheck is the agent's own statement about one trigger.
type TriggerCheck struct {
	Trigger       string
	Matched       bool
	ValueObserved []byte // raw JSON; nil when absent
}

// PrincipalResponse is the principal's answer to an escalation.
type PrincipalResponse struct {
	Decision   string
	Timestamp  time.Time // zero when absent
	Conditions []string  // condition expressions of AAP section 4.6
}

// Context is the context block (AAP section 5.7) and the parts of its metadata that Plumbline
// reads. It is the zero value where the block is absent.
type Context struct {
	SessionID        string // if empty, the trace belongs to its agent's synthetic session of the day
	ConversationTurn int64
	HasTurn          bool
	PriorTraceIDs    []string
	Environment      Members
	Metadata         Members
	Members          Members // every member of the block, for condition look-ups

	SessionEnd        bool   // metadata.session_end
	SequenceNumber    uint64 // metadata.sequence_number; meaningful when HasSequenceNumber
	HasSequenceNumber bool
	Execution         Execution // metadata.execution
}

// Execution is what the action really did, according to the agent (context.metadata.execution;
// a convention of Plumbline).
type Execution struct {
	Present   bool
	ToolName  string
	Inputs    []byte // raw JSON; nil when absent
	Outputs   []byte // raw JSON; nil when absent
	CostCents int64  // 0 or more
	Error     string
}

// The provenance tags of claims (message-integrity RFC, section 6).
const (
	TagGrounded = "[G]" // backed by a tool result, a file or an answer of an API
	TagInferred = "[I]" // synthesized, estimated or reasoned
)

// Claims counts the claims in the selection reasoning by their tags.
func (d *Decision) Claims() (grounded, inferred int) {
	if strings.IndexByte(d.Reasoning, '[') < 0 {
		return 0, 0
	}
	return strings.Count(d.Reasoning, TagGrounded), strings.Count(d.Reasoning, TagInferred)
}

// Receipt records that one trace is stored. The verifier writes it after the insert and before
// the ack, so the exporter knows every session's extent and true digests without a query of
// ClickHouse.
type Receipt struct {
	AgentID   string
	SessionID string    // never empty: a trace without a session has a synthetic one
	Stream    int64     // when stream TRACES was created, in Unix nanoseconds; 0 in old receipts, which lack it
	Sequence  uint64    // in that stream
	Digest    Digest    // of the record's bytes
	EventTime time.Time // the trace's own time
	Bytes     int       // of the record; 0 in old receipts, which lack it
	End       bool      // the trace ends its session
}
