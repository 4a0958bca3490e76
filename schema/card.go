package schema

import (
	"strings"
	"time"
)

// Shape says which of the two published shapes a card has.
type Shape string

// The two card shapes: AAP 0.1.0 (autonomy_envelope, audit_commitment) and the
// SDK's 2.x names (autonomy, audit).
const (
	ShapeEnvelope Shape = "0.1.0"
	ShapeUnified  Shape = "2.x"
)

// Blocks returns the names of the autonomy and the audit block in cards of this shape.
func (s Shape) Blocks() (autonomy, audit string) {
	if s == ShapeUnified {
		return "autonomy", "audit"
	}
	return "autonomy_envelope", "audit_commitment"
}

// TriggerAction is the action that a matched escalation trigger demands (AAP section 4.5).
type TriggerAction string

// The three trigger actions of AAP section 4.5.
const (
	TriggerEscalate TriggerAction = "escalate"
	TriggerDeny     TriggerAction = "deny"
	TriggerLog      TriggerAction = "log"
)

// Card is one Alignment Card (AAP section 4.2) in either shape.
type Card struct {
	Shape      Shape
	Version    string // aap_version, or card_version of the 2.x shape
	CardID     string
	AgentID    string
	IssuedAt   time.Time
	ExpiresAt  time.Time // zero when absent
	Principal  Principal
	Values     Values
	Autonomy   Autonomy
	Audit      Audit
	Extensions Members    // each key is a namespace; unknown namespaces are ignored
	Keys       []Key      // extensions.plumbline.keys: the keys that the agent signs with
	Signature  *Signature // nil when absent

	Raw    []byte // the bytes registered
	Digest Digest // SHA-256 of the JCS form (RFC 8785)
	Policy Digest // SHA-256 of the blocks of values and autonomy as they are written: where it is the same, Values and Autonomy are
}

// Principal is the principal block (AAP section 4.3).
type Principal struct {
	Type              string // human, organization, agent, unspecified
	Identifier        string
	Relationship      string // delegated_authority, advisory, autonomous
	EscalationContact string
}

// RelationshipAdvisory is the relationship of an agent that only recommends (AAP section 4.3).
const RelationshipAdvisory = "advisory"

// Values is the values block (AAP section 4.4).
type Values struct {
	Declared      []string
	Definitions   []ValueDefinition
	ConflictsWith []string
	Hierarchy     string // lexicographic, weighted, contextual; empty when absent
}

// ValueDefinition is one entry of values.definitions.
type ValueDefinition struct {
	ID          string
	Name        string
	Description string
	Priority    float64
	HasPriority bool
	Subsumes    []string // values that this one includes (AAP section 6.5; a convention of Plumbline)
}

// Autonomy is the autonomy envelope (AAP section 4.5).
type Autonomy struct {
	BoundedActions     []string
	EscalationTriggers []Trigger
	MaxAutonomousValue MaxValue
	ForbiddenActions   []string
}

// ActionSet is the set of the names that a list of actions of a card stands for (AAP section 4.5).
type ActionSet map[string]struct{}

// NewActionSet returns the names of a list of actions.
func NewActionSet(entries []string) ActionSet {
	set := make(ActionSet, len(entries))
	for _, entry := range entries {
		for _, name := range EntryNames(entry) {
			set[name] = struct{}{}
		}
	}
	return set
}

// EntryNames returns the names that an entry of a list of actions stands for: the entry itself, and
// the bare name of an entry "name: description".
func EntryNames(entry string) []string {
	name, _, described := strings.Cut(entry, ":")
	if name = strings.TrimSpace(name); described && name != "" {
		return []string{entry, name}
	}
	return []string{entry}
}

// Has reports whether name is in the set.
func (s ActionSet) Has(name string) bool {
	_, ok := s[name]
	return ok
}

// Allows reports whether name, or every part of the compound name "a, b", is in the set. An empty
// part is not.
func (s ActionSet) Allows(name string) bool {
	if s.Has(name) {
		return true
	}
	for part := range strings.SplitSeq(name, ",") {
		if part = strings.TrimSpace(part); part == "" || !s.Has(part) {
			return false
		}
	}
	return true
}

// Touches reports whether name, or any part of it, is in the set.
func (s ActionSet) Touches(name string) bool {
	if s.Has(name) {
		return true
	}
	for part := range strings.SplitSeq(name, ",") {
		if part = strings.TrimSpace(part); part != "" && s.Has(part) {
			return true
		}
	}
	return false
}

// Trigger is one escalation trigger (AAP section 4.5).
type Trigger struct {
	Condition string
	Action    TriggerAction
	Reason    string
}

// MaxValue is max_autonomous_value (AAP section 4.5).
type MaxValue struct {
	Present  bool
	Amount   float64
	Digits   string // the amount as the card writes it; an amount in wei has more digits than a float64 holds
	Currency string
}

// TamperSigned is the tamper evidence of an agent that signs its traces (AAP sections 4.7 and
// 9.3).
const TamperSigned = "signed"

// Audit is the audit commitment (AAP section 4.7).
type Audit struct {
	TraceFormat     string
	RetentionDays   int
	StorageType     string // local, remote, distributed; empty when absent
	StorageLocation string
	Queryable       bool
	QueryEndpoint   string
	TamperEvidence  string // append_only, TamperSigned, merkle; empty when absent
}

// MaxReasonBytes is the longest reason of a revocation.
const MaxReasonBytes = 1024

// Revocation withdraws a card (AAP section 9.2): the card is not in force from RevokedAt on. A
// card is revoked once, and its revocation never changes.
type Revocation struct {
	CardID    string    `json:"card_id"`
	AgentID   string    `json:"agent_id"`   // of the card
	RevokedAt time.Time `json:"revoked_at"` // UTC, by the clock of the service that accepted the request
	Reason    string    `json:"reason"`
}
