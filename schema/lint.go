package schema

import (
	"fmt"
	"strings"
)

// Hint is a remark on a valid card that may not say what its publisher means.
type Hint struct {
	Type        string `json:"type"` // one of the Lint names
	Pointer     string `json:"pointer"`
	Description string `json:"description"` // what to do
}

// The types of hints. Their names are stable.
const (
	LintStandardValue  = "standard_value_near_miss"     // a custom value that looks like a standard one of section 4.4
	LintVersion        = "other_aap_version"            // not the version of sections 4.2 and 11.1
	LintNoExpiry       = "missing_expires_at"           // SHOULD of section 9.2
	LintUnsigned       = "unsigned_card"                // SHOULD of section 9.2
	LintPrincipal      = "missing_principal_identifier" // a rule of the 2.x SDK
	LintRetention      = "zero_retention"               // a rule of the first SDK
	LintNoValues       = "no_declared_values"
	LintValueTwice     = "duplicate_value"
	LintOwnConflict    = "declared_value_in_conflict"
	LintUnusedValue    = "unused_definition"
	LintNoActions      = "empty_bounded_actions"
	LintActionTwice    = "duplicate_action"
	LintActionBlank    = "action_with_white_space"
	LintActionShared   = "action_bounded_and_forbidden_in_short"
	LintTriggerTwice   = "duplicate_trigger"
	LintTriggerReason  = "empty_trigger_reason"
	LintTriggerNever   = "trigger_never_fires" // found by aap.Lint, which parses conditions
	LintNoCurrency     = "value_limit_without_currency"
	LintSignedNoKeys   = "signed_traces_without_keys"
	LintDefinitionText = "empty_definition"
)

// Lint looks for what is allowed and probably not intended. It does not look into conditions;
// aap.Lint does that in addition.
func Lint(c *Card) []Hint {
	l := &linter{card: c}
	l.autonomy, l.audit = c.Shape.Blocks()
	if c.Shape == ShapeEnvelope && !strings.HasPrefix(c.Version, "0.") {
		l.hint(LintVersion, "/aap_version", "%q is not a version of AAP 0: the card is read as version 0.1.0; write that", clip(c.Version))
	}
	if c.ExpiresAt.IsZero() {
		l.hint(LintNoExpiry, "/expires_at", "the card never expires: set an expiry, and issue a new card in time")
	}
	if c.Signature == nil {
		l.hint(LintUnsigned, "/signature", "the card is unsigned, so its author cannot be verified: sign it (Ed25519 over its JCS form)")
	}
	if c.Shape == ShapeEnvelope && c.Principal.Type != "unspecified" && c.Principal.Identifier == "" {
		l.hint(LintPrincipal, "/principal/identifier", "optional here, but required if you move to card format 2.x: name the principal, or make its type unspecified")
	}
	l.values()
	l.definitions()
	l.actions()
	l.triggers()
	if m := c.Autonomy.MaxAutonomousValue; m.Present && m.Currency == "" {
		l.hint(LintNoCurrency, l.at("max_autonomous_value"), "the limit has no currency, so it applies to amounts in every currency: name one")
	}
	if c.Audit.RetentionDays == 0 {
		l.hint(LintRetention, "/"+l.audit+"/retention_days", "traces need not be kept for a single day: commit to a retention")
	}
	if c.Audit.TamperEvidence == TamperSigned && len(c.Keys) == 0 {
		l.hint(LintSignedNoKeys, "/"+l.audit+"/tamper_evidence",
			"the card commits to signed traces and registers no key to check them by: list the agent's public keys in extensions.plumbline.keys")
	}
	return l.hints
}

type linter struct {
	card     *Card
	autonomy string // the names of the blocks in this shape
	audit    string
	hints    []Hint
}

func (l *linter) hint(kind, at, description string, args ...any) {
	l.hints = append(l.hints, Hint{Type: kind, Pointer: at, Description: fmt.Sprintf(description, args...)})
}

func (l *linter) values() {
	v := &l.card.Values
	if len(v.Declared) == 0 {
		l.hint(LintNoValues, "/values/declared", "every value that a trace applies will be undeclared: declare the values that the agent applies")
	}
	seen, conflicts := map[string]bool{}, set(v.ConflictsWith)
	for i, value := range v.Declared {
		at := fmt.Sprintf("/values/declared/%d", i)
		l.nearMiss(at, value)
		if seen[value] {
			l.hint(LintValueTwice, at, "%q is declared before: remove it", value)
		}
		seen[value] = true
		if conflicts[value] {
			l.hint(LintOwnConflict, at, "%q is in conflicts_with too: the agent could not work with one of its own kind", value)
		}
	}
	for i, value := range v.ConflictsWith {
		l.nearMiss(fmt.Sprintf("/values/conflicts_with/%d", i), value)
	}
}

// nearMiss reports a value that looks like a standard one. Verification and the handshake
// compare values exactly.
func (l *linter) nearMiss(at, value string) {
	if standard := nearName(value, StandardValues); standard != "" {
		l.hint(LintStandardValue, at, "%q is not a standard value, but resembles %q: use that spelling if you mean it", value, standard)
	}
}

func (l *linter) definitions() {
	v := &l.card.Values
	used := set(v.Declared)
	for _, value := range v.ConflictsWith {
		used[value] = true
	}
	for _, def := range v.Definitions {
		for _, value := range def.Subsumes {
			used[value] = true
		}
	}
	for _, def := range v.Definitions {
		at := pointer("values", "definitions", def.ID)
		if !used[def.ID] {
			l.hint(LintUnusedValue, at, "%q is defined and never used: declare it, or remove its definition", def.ID)
		}
		if strings.TrimSpace(def.Description) == "" {
			l.hint(LintDefinitionText, at+"/description", "%q has an empty description: say what the value means in operation", def.ID)
		}
	}
}

func (l *linter) actions() {
	a := &l.card.Autonomy
	if len(a.BoundedActions) == 0 {
		l.hint(LintNoActions, l.at("bounded_actions"), "no action is bounded: every action that a trace calls bounded is a violation")
	}
	l.entries("bounded_actions", a.BoundedActions)
	l.entries("forbidden_actions", a.ForbiddenActions)
	bounded := newActionNames(a.BoundedActions)
	for i, entry := range a.ForbiddenActions {
		_, short := actionEntry(entry)
		if other, both := bounded.all[short]; both && short != "" {
			l.hint(LintActionShared, l.at("forbidden_actions", i), "%q and the bounded %q both stand for an action called %q as well, "+
				"which will be judged forbidden: leave a blank after the colon of a description, and none inside a name", entry, other, short)
		}
	}
}

// entries checks one list of actions.
func (l *linter) entries(list string, entries []string) {
	seen := map[string]bool{}
	for i, entry := range entries {
		if seen[entry] {
			l.hint(LintActionTwice, l.at(list, i), "%q is listed before: remove it", entry)
		}
		seen[entry] = true
		if strings.TrimSpace(entry) != entry {
			l.hint(LintActionBlank, l.at(list, i), "%q begins or ends with white space, so no action will match it: trim it", entry)
		}
	}
}

func (l *linter) triggers() {
	seen := map[string]int{}
	for i, t := range l.card.Autonomy.EscalationTriggers {
		key := strings.Join(strings.Fields(t.Condition), " ") + "\x00" + string(t.Action)
		if first, twice := seen[key]; twice {
			l.hint(LintTriggerTwice, l.at("escalation_triggers", i), "repeats trigger %d: remove one of them", first)
		} else {
			seen[key] = i
		}
		if strings.TrimSpace(t.Reason) == "" {
			l.hint(LintTriggerReason, l.at("escalation_triggers", i)+"/reason", "the reason is empty: write one for the person who is asked")
		}
	}
}

// at returns the pointer of a member of the autonomy block, or of one of its elements.
func (l *linter) at(member string, index ...int) string {
	p := "/" + l.autonomy + "/" + member
	for _, i := range index {
		p += fmt.Sprintf("/%d", i)
	}
	return p
}

func set(names []string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, name := range names {
		m[name] = true
	}
	return m
}
