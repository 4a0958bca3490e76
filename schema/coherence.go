package schema

import "time"

// Assessment is the finding about two cards and a task. Package aap/coherence returns it, flat
// as the public SDK writes it. A CoherenceResult carries the same content as a message.
type Assessment struct {
	Coherence
	Outcome
}

// Coherence is the coherence block of a result (AAP section 6.3.4). In results of Plumbline,
// Compatible always equals Outcome.Proceed.
type Coherence struct {
	Compatible bool           `json:"compatible"`
	Score      float64        `json:"score"` // 0..1, four decimals
	Alignment  ValueAlignment `json:"value_alignment"`
}

// ValueAlignment lists the values that the task requires: those that both cards declare, those
// that they do not, and every conflict, resolved conflicts included.
type ValueAlignment struct {
	Matched   []string        `json:"matched"`
	Unmatched []string        `json:"unmatched"`
	Conflicts []ValueConflict `json:"conflicts"`
}

// ConflictsWith replaces the value of a side that refuses the other side's value by its
// conflicts_with and declares no values.
const ConflictsWith = "(conflicts_with)"

// ConflictIncompatible is the type of a conflict in which one side refuses the other's value.
const ConflictIncompatible = "incompatible"

// ValueConflict is a value of one card that the other card refuses to coordinate with, and the
// opposing value of the refusing card.
type ValueConflict struct {
	InitiatorValue string         `json:"initiator_value"`
	ResponderValue string         `json:"responder_value"`
	ConflictType   string         `json:"conflict_type"`
	Description    string         `json:"description"`
	RefusedBy      Side           `json:"refused_by,omitempty"`  // the side whose conflicts_with lists the other's value
	ResolvedBy     ResolutionKind `json:"resolved_by,omitempty"` // empty while the conflict is unresolved
}

// Outcome is the conclusion from a Coherence. Section 6.3.4 does not have the members Reasons,
// ResolutionSteps and Metadata.
type Outcome struct {
	Proceed            bool                `json:"proceed"`
	Conditions         []string            `json:"conditions"` // the conditions on which proceeding depends
	ProposedResolution *ProposedResolution `json:"proposed_resolution,omitempty"`
	Reasons            []Reason            `json:"reasons"` // reasons not to proceed; empty exactly when Proceed
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
	ReasonCardUnknown     = "card_unknown"        // no card is known under the id
	ReasonCardNotIssued   = "card_not_yet_issued" // issued_at is later than any error of a clock explains
	ReasonCardExpired     = "card_expired"        // expires_at has passed
	ReasonCardRevoked     = "card_revoked"        // revoked by the time of the assessment
	ReasonCardSuperseded  = "card_superseded"     // a newer card of the agent is in force
	ReasonCardMismatch    = "card_mismatch"       // the card_id is not the one that the message names
	ReasonAgentMismatch   = "agent_mismatch"      // the card belongs to another agent
	ReasonTooManyValues   = "too_many_values"     // more values than are compared
	ReasonNothingRequired = "nothing_required"    // no value is required, and none is declared
	ReasonValueConflict   = "value_conflict"      // a conflict is unresolved
	ReasonLowScore        = "score_below_minimum"
	ReasonForbiddenAction = "forbidden_action" // the scope has an action that its agent's card forbids
)

// Reason is one reason not to proceed. Side, AgentID and CardID are empty where the reason
// concerns both cards.
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

// StepOutcome is the outcome of a step of resolution.
type StepOutcome string

// The outcomes of a step.
const (
	StepResolved StepOutcome = "resolved" // the conflict or action no longer prevents proceeding
	StepProposed StepOutcome = "proposed" // the initiator may accept it in another check
	StepFailed   StepOutcome = "failed"   // the next step is tried
	StepRequired StepOutcome = "required" // only the principals can resolve it
)

// ResolutionStep is one step taken for one conflict or one forbidden action.
type ResolutionStep struct {
	Step    ResolutionKind `json:"step"`
	Subject string         `json:"subject"` // the value or the action
	Side    Side           `json:"side"`    // the side that has the value or the action
	Outcome StepOutcome    `json:"outcome"`
	Reason  string         `json:"reason"`
}

// ProposedResolution is what could resolve the conflicts (AAP section 6.3.4).
type ProposedResolution struct {
	Type        ResolutionKind `json:"type"`
	Reason      string         `json:"reason"`
	Alternative *ModifiedScope `json:"alternative,omitempty"`
	Contacts    []Contact      `json:"escalation_contacts,omitempty"` // of an escalation; an addition of Plumbline
}

// ModifiedScope is the alternative of a resolution. AutonomyScope and DataSharing are present
// where they would have to change.
type ModifiedScope struct {
	Type           ResolutionKind  `json:"type"`
	Description    string          `json:"description"`
	ModifiedValues *ModifiedValues `json:"modified_values,omitempty"`
	AutonomyScope  *AutonomyScope  `json:"autonomy_scope,omitempty"`
	DataSharing    *DataSharing    `json:"data_sharing,omitempty"`
}

// Contact is the escalation contact of a principal; empty where the card names none.
type Contact struct {
	Side    Side   `json:"side"`
	AgentID string `json:"agent_id"`
	Contact string `json:"escalation_contact"`
}

// RequiredFrom says where the required values come from (AAP section 6.4).
type RequiredFrom string

// The two sources in their order of precedence. Results of plumbline-coherence/1 may also say
// "values_intersection".
const (
	RequiredByTask  RequiredFrom = "values_required"
	RequiredByCards RequiredFrom = "union"
)

// CoherenceMetadata says how a result was computed. A digest is absent where the card is
// unknown.
type CoherenceMetadata struct {
	EngineVersion   string       `json:"engine_version"`
	Profile         string       `json:"profile"`
	MinCoherence    float64      `json:"min_coherence"`
	Methodology     string       `json:"methodology,omitempty"` // where the threshold was changed (AAP section 8.3)
	RequiredFrom    RequiredFrom `json:"required_from,omitempty"`
	InitiatorDigest Digest       `json:"initiator_card_digest,omitzero"`
	ResponderDigest Digest       `json:"responder_card_digest,omitzero"`
	AssessedAt      time.Time    `json:"assessed_at,omitzero"` // the time for which it was decided whether the cards are in force
}
