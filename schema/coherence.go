package schema

import "time"

// Assessment is what was found about two cards and a task: the answer of package
// aap/coherence, flat as the public SDK writes it. A CoherenceResult carries the
// same as a message.
type Assessment struct {
	Coherence
	Outcome
}

// Coherence is the coherence block of a result (AAP section 6.3.4). Compatible
// equals Outcome.Proceed in every result of ours.
type Coherence struct {
	Compatible bool           `json:"compatible"`
	Score      float64        `json:"score"` // 0..1, four decimals
	Alignment  ValueAlignment `json:"value_alignment"`
}

// ValueAlignment lists the values that the task requires, by whether both cards
// declare them, and every conflict, resolved ones included.
type ValueAlignment struct {
	Matched   []string        `json:"matched"`
	Unmatched []string        `json:"unmatched"`
	Conflicts []ValueConflict `json:"conflicts"`
}

// ConflictsWith stands in a conflict for a side that refuses the other's value by
// its conflicts_with and declares no value itself.
const ConflictsWith = "(conflicts_with)"

// ConflictIncompatible is the type of a conflict: one side refuses the value.
const ConflictIncompatible = "incompatible"

// ValueConflict is a value of one card that the other refuses to coordinate with,
// beside the value of the refusing card that stands against it.
type ValueConflict struct {
	InitiatorValue string         `json:"initiator_value"`
	ResponderValue string         `json:"responder_value"`
	ConflictType   string         `json:"conflict_type"`
	Description    string         `json:"description"`
	RefusedBy      Side           `json:"refused_by,omitempty"`  // whose conflicts_with lists the other's value
	ResolvedBy     ResolutionKind `json:"resolved_by,omitempty"` // empty while the conflict stands
}

// Outcome is what follows from a Coherence. Reasons, ResolutionSteps and Metadata
// are members that section 6.3.4 does not have.
type Outcome struct {
	Proceed            bool                `json:"proceed"`
	Conditions         []string            `json:"conditions"` // what proceeding depends on
	ProposedResolution *ProposedResolution `json:"proposed_resolution,omitempty"`
	Reasons            []Reason            `json:"reasons"` // against proceeding; empty exactly when Proceed
	ResolutionSteps    []ResolutionStep    `json:"resolution_steps"`
	Metadata           CoherenceMetadata   `json:"coherence_metadata"`
}

// Side is one of the two parties of a handshake.
type Side string

// The two sides.
const (
	Initiator Side = "initiator"
	Responder Side = "responder"
)

// Codes of a Reason.
const (
	ReasonCardUnknown     = "card_unknown"        // nobody has the card
	ReasonCardNotIssued   = "card_not_yet_issued" // issued_at is later than any clock's error
	ReasonCardExpired     = "card_expired"        // expires_at has passed
	ReasonCardRevoked     = "card_revoked"        // revoked by now
	ReasonCardSuperseded  = "card_superseded"     // its agent has a newer one in force
	ReasonCardMismatch    = "card_mismatch"       // another card_id than the message names
	ReasonAgentMismatch   = "agent_mismatch"      // the card of another agent
	ReasonTooManyValues   = "too_many_values"     // beyond what is compared
	ReasonNothingRequired = "nothing_required"    // no value is required, and none declared
	ReasonValueConflict   = "value_conflict"      // a conflict stands
	ReasonLowScore        = "score_below_minimum"
	ReasonForbiddenAction = "forbidden_action" // the scope has an action that its agent's card forbids
)

// Reason says why not to proceed. Side, AgentID and CardID are empty where it is
// about both cards.
type Reason struct {
	Code        string `json:"code"`
	Side        Side   `json:"side,omitempty"`
	AgentID     string `json:"agent_id,omitempty"`
	CardID      string `json:"card_id,omitempty"`
	Description string `json:"description"`
}

// ResolutionKind is a step of AAP section 6.5, and the type of a resolution.
type ResolutionKind string

// The three kinds of resolution, in their order (AAP sections 6.3.4 and 6.5).
const (
	ResolutionAutomatic ResolutionKind = "automatic"
	ResolutionScope     ResolutionKind = "modified_scope"
	ResolutionEscalate  ResolutionKind = "escalate_to_principals"
)

// StepOutcome is what a step of resolution led to.
type StepOutcome string

// The outcomes of a step.
const (
	StepResolved StepOutcome = "resolved" // what it is about no longer stands in the way
	StepProposed StepOutcome = "proposed" // the initiator may take it up in another check
	StepFailed   StepOutcome = "failed"   // the next step is tried
	StepRequired StepOutcome = "required" // only the principals can resolve it
)

// ResolutionStep is one step taken for one conflict or one forbidden action.
type ResolutionStep struct {
	Step    ResolutionKind `json:"step"`
	Subject string         `json:"subject"` // the value or the action
	Side    Side           `json:"side"`    // whose value or action it is
	Outcome StepOutcome    `json:"outcome"`
	Reason  string         `json:"reason"`
}

// ProposedResolution is what could resolve the conflicts (AAP section 6.3.4).
type ProposedResolution struct {
	Type        ResolutionKind `json:"type"`
	Reason      string         `json:"reason"`
	Alternative *ModifiedScope `json:"alternative,omitempty"`
	Contacts    []Contact      `json:"escalation_contacts,omitempty"` // of an escalation; an addition of ours
}

// ModifiedScope is the alternative of a resolution. AutonomyScope and DataSharing are there
// where they would have to change.
type ModifiedScope struct {
	Type           ResolutionKind  `json:"type"`
	Description    string          `json:"description"`
	ModifiedValues *ModifiedValues `json:"modified_values,omitempty"`
	AutonomyScope  *AutonomyScope  `json:"autonomy_scope,omitempty"`
	DataSharing    *DataSharing    `json:"data_sharing,omitempty"`
}

// Contact is where a principal is reached; empty where the card names none.
type Contact struct {
	Side    Side   `json:"side"`
	AgentID string `json:"agent_id"`
	Contact string `json:"escalation_contact"`
}

// RequiredFrom says where the required values came from (AAP section 6.4).
type RequiredFrom string

// The two sources, in their order of precedence. Results of plumbline-coherence/1
// may say "values_intersection", too.
const (
	RequiredByTask  RequiredFrom = "values_required"
	RequiredByCards RequiredFrom = "union"
)

// CoherenceMetadata says how a result came about. Digests are absent where the
// card is not known.
type CoherenceMetadata struct {
	EngineVersion   string       `json:"engine_version"`
	Profile         string       `json:"profile"`
	MinCoherence    float64      `json:"min_coherence"`
	Methodology     string       `json:"methodology,omitempty"` // where the threshold was changed (AAP section 8.3)
	RequiredFrom    RequiredFrom `json:"required_from,omitempty"`
	InitiatorDigest Digest       `json:"initiator_card_digest,omitzero"`
	ResponderDigest Digest       `json:"responder_card_digest,omitzero"`
	AssessedAt      time.Time    `json:"assessed_at,omitzero"` // the time at which the cards were in force or not
}
