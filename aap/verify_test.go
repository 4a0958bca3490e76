package aap

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// A card and a trace without faults. Each case of the tables below replaces a piece of one of
// them.
const (
	cardText = `{
	"aap_version": "0.1.0", "card_id": "ac-1", "agent_id": "agent-1",
	"issued_at": "2026-01-01T00:00:00Z", "expires_at": "2026-07-01T00:00:00Z",
	"principal": {"type": "human", "relationship": "delegated_authority"},
	"values": {"declared": ["honesty", "privacy"]},
	"autonomy_envelope": {
		"bounded_actions": ["search", "compare", "book: reserves a seat"],
		"forbidden_actions": ["delete", "share: with anybody"],
		"escalation_triggers": [
			{"condition": "purchase_value > 100", "action": "escalate", "reason": "r"},
			{"condition": "risk == \"high\"", "action": "deny", "reason": "r"},
			{"condition": "night", "action": "log", "reason": "r"}],
		"max_autonomous_value": {"amount": 500, "currency": "EUR"}},
	"audit_commitment": {"trace_format": "ap-trace-v1", "retention_days": 90, "queryable": false}}`

	traceText = `{
	"trace_id": "tr-1", "agent_id": "agent-1", "card_id": "ac-1", "timestamp": "2026-03-01T12:00:00Z",
	"action": {"type": "execute", "name": "search", "category": "bounded", "parameters": {"q": "x"}},
	"decision": {"alternatives_considered": [
		{"option_id": "A", "description": "a", "score": 0.9}, {"option_id": "B", "description": "b", "score": 0.1}],
		"selected": "A", "selection_reasoning": "r", "values_applied": ["honesty"], "confidence": 0.8},
	"escalation": {"evaluated": true, "required": false, "reason": "r", "triggers_checked": [{"trigger": "purchase_value>100", "matched": false}]},
	"context": {"session_id": "s", "purchase_value": 50, "risk": "low", "night": false, "metadata": {"currency": "EUR"}}}`
)

// replace replaces pieces of a text and fails if one is missing.
func replace(t testing.TB, text string, pieces ...string) string {
	t.Helper()
	for i := 0; i < len(pieces); i += 2 {
		if !strings.Contains(text, pieces[i]) {
			t.Fatalf("%s is not in the text", pieces[i])
		}
		text = strings.Replace(text, pieces[i], pieces[i+1], 1)
	}
	return text
}

func compiled(t testing.TB, text string) *Compiled {
	t.Helper()
	card, err := schema.DecodeCard([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return Compile(card)
}

func admitted(t testing.TB, text string) *schema.Trace {
	t.Helper()
	trace, err := schema.Admit("", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

var now = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)

func at(text string) time.Time {
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return parsed
}

// remarks returns the types of v's remarks.
func remarks(v *schema.Verdict) string {
	var types []string
	for _, remark := range slices.Concat(v.Violations, v.Findings, v.Warnings) {
		types = append(types, remark.Type)
	}
	return strings.Join(types, " ")
}

type verifyCase struct {
	name  string
	card  []string // pairs of an old and a new text
	trace []string
	facts Facts
	want  string // violations, findings and warnings, in this order
}

func (c *verifyCase) run(t *testing.T, j *Judge) {
	t.Helper()
	var v schema.Verdict
	j.Verify(admitted(t, replace(t, traceText, c.trace...)), compiled(t, replace(t, cardText, c.card...)), c.facts, now, &v)
	if got := remarks(&v); got != c.want {
		t.Errorf("%s: got %q, want %q", c.name, got, c.want)
	}
	for _, clock := range []time.Time{now.AddDate(0, 0, 1), now.AddDate(0, 0, -1)} { // no verdict depends on the time of verification
		var again schema.Verdict
		j.Verify(admitted(t, replace(t, traceText, c.trace...)), compiled(t, replace(t, cardText, c.card...)), c.facts, clock, &again)
		if again.Timestamp = v.Timestamp; !reflect.DeepEqual(again, v) {
			t.Errorf("%s: at %s it is %+v", c.name, clock, again)
		}
	}
	for _, remark := range slices.Concat(v.Violations, v.Findings) {
		if remark.Severity == "" || remark.Description == "" {
			t.Errorf("%s: an incomplete remark: %+v", c.name, remark)
		}
	}
	if v.Verified != (len(v.Violations) == 0) {
		t.Errorf("%s: verified %v with violations %v", c.name, v.Verified, v.Violations)
	}
}

const (
	bought     = `"purchase_value": 150`
	cheap      = `"purchase_value": 50`
	claimed    = `"matched": false`
	noClaim    = `{"trigger": "purchase_value>100", "matched": false}`
	escalated  = `"required": true`
	unneeded   = `"required": false`
	execute    = `"type": "execute"`
	otherType  = `"type": "recommend"`
	searchName = `"name": "search"`
	bounded    = `"category": "bounded"`
	triggerCat = `"category": "escalation_trigger"`
)

func TestViolations(t *testing.T) {
	j := judge(t)
	for _, c := range []verifyCase{
		{name: "clean"},

		{name: "mismatch", trace: []string{`"ac-1"`, `"ac-2"`}, facts: Facts{GivenApart: true}, want: "CARD_MISMATCH"},
		{name: "no mismatch in the stream", trace: []string{`"ac-1"`, `"ac-2"`}},
		{name: "match of a card given apart", facts: Facts{GivenApart: true}},

		{name: "expired", trace: []string{`2026-03-01T12`, `2026-07-01T12`}, want: "CARD_EXPIRED"},
		{name: "at the moment of expiry", trace: []string{`2026-03-01T12`, `2026-07-01T00`}},
		{name: "without expiry", card: []string{`"expires_at": "2026-07-01T00:00:00Z",`, ``}, trace: []string{`2026-03-01T12`, `2026-07-01T12`}},

		{name: "unbounded", trace: []string{searchName, `"name": "fly"`}, want: "UNBOUNDED_ACTION"},
		{name: "described entry", trace: []string{searchName, `"name": "book"`}},
		{name: "whole entry", trace: []string{searchName, `"name": "book: reserves a seat"`}},
		{name: "compound", trace: []string{searchName, `"name": "search, book"`}},
		{name: "compound without space", trace: []string{searchName, `"name": "search,book"`}},
		{name: "compound with another", trace: []string{searchName, `"name": "search, fly"`}, want: "UNBOUNDED_ACTION"},
		{name: "compound with an empty part", trace: []string{searchName, `"name": "search, "`}, want: "UNBOUNDED_ACTION"},
		{name: "blank", trace: []string{searchName, `"name": " "`}, want: "UNBOUNDED_ACTION"},
		{name: "only a comma", trace: []string{searchName, `"name": ", "`}, want: "UNBOUNDED_ACTION"},
		{name: "another case", trace: []string{searchName, `"name": "Search"`}, want: "UNBOUNDED_ACTION"},
		{name: "no wildcards", card: []string{`"search"`, `"*"`}, want: "UNBOUNDED_ACTION"},

		{name: "forbidden", trace: []string{searchName, `"name": "delete"`, bounded, `"category": "forbidden"`}, want: "FORBIDDEN_ACTION"},
		{name: "forbidden and called bounded", trace: []string{searchName, `"name": "delete"`}, want: "UNBOUNDED_ACTION FORBIDDEN_ACTION CATEGORY_MISMATCH"},
		{name: "forbidden part", trace: []string{searchName, `"name": "search, delete"`}, want: "UNBOUNDED_ACTION FORBIDDEN_ACTION CATEGORY_MISMATCH"},
		{name: "forbidden part without space", trace: []string{searchName, `"name": "search,delete"`}, want: "UNBOUNDED_ACTION FORBIDDEN_ACTION CATEGORY_MISMATCH"},
		{name: "forbidden in blanks", trace: []string{searchName, `"name": " delete "`}, want: "UNBOUNDED_ACTION FORBIDDEN_ACTION CATEGORY_MISMATCH"},
		{name: "described forbidden entry", trace: []string{searchName, `"name": "share"`}, want: "UNBOUNDED_ACTION FORBIDDEN_ACTION CATEGORY_MISMATCH"},

		{name: "missed", trace: []string{cheap, bought, noClaim, ``}, want: "MISSED_ESCALATION"},
		{name: "escalated", trace: []string{cheap, bought, noClaim, ``, unneeded, escalated}},
		{name: "no escalation block", trace: []string{cheap, bought, `"escalation": {`, `"escalations": {`}, want: "MISSED_ESCALATION"},
		{name: "numeric text", trace: []string{cheap, `"purchase_value": "150"`, noClaim, ``}, want: "MISSED_ESCALATION"},
		{name: "in the parameters", trace: []string{`"q": "x"`, `"purchase_value": 150`, `"purchase_value": 50,`, ``, noClaim, ``}, want: "MISSED_ESCALATION"},
		{name: "in the metadata", trace: []string{`"purchase_value": 50,`, ``, `"metadata": {`, `"metadata": {"purchase_value": 150, `, noClaim, ``}, want: "MISSED_ESCALATION"},
		{name: "at the root", trace: []string{`"purchase_value": 50,`, ``, `"trace_id"`, `"purchase_value": 150, "trace_id"`, noClaim, ``}, want: "MISSED_ESCALATION"},
		{name: "deny is missed too", trace: []string{`"low"`, `"high"`, execute, otherType}, want: "MISSED_ESCALATION"},
		{name: "timed out", trace: []string{cheap, bought, noClaim, ``, unneeded, escalated + `, "escalation_status": "timeout"`}, want: "escalation_timeout"},
		{name: "log", trace: []string{`"night": false`, `"night": true`}, want: "log_trigger"},

		{name: "undeclared", trace: []string{`["honesty"]`, `["honesty", "profit", "Privacy"]`}, want: "UNDECLARED_VALUE UNDECLARED_VALUE"},
		{name: "declared", trace: []string{`["honesty"]`, `["privacy", "honesty"]`}},
	} {
		c.run(t, j)
	}
}

func TestFindings(t *testing.T) {
	j := judge(t)
	approval := func(conditions string) string {
		return `"required": true, "escalation_status": "approved", "principal_response": {"decision": "approved", "conditions": [` + conditions + `]}`
	}
	for _, c := range []verifyCase{
		{name: "agent", trace: []string{`"agent-1"`, `"agent-2"`}, want: "AGENT_MISMATCH"},
		{name: "agent with a card of its own", trace: []string{`"agent-1"`, `"agent-2"`}, facts: Facts{InForce: "ac-2"}, want: "CARD_MISMATCH AGENT_MISMATCH"},
		{name: "superseded", facts: Facts{InForce: "ac-2"}, want: "CARD_SUPERSEDED"},

		{name: "revoked", facts: Facts{RevokedAt: at("2026-03-01T12:00:00Z")}, want: "CARD_REVOKED"},
		{name: "revoked later", facts: Facts{RevokedAt: at("2026-03-01T12:00:01Z")}},
		{name: "backdated before revocation", facts: Facts{RevokedAt: at("2026-03-01T12:00:01Z"), Received: at("2026-03-02T00:00:00Z")}, want: "BACKDATED"},
		{name: "backdated before expiry", facts: Facts{Received: at("2026-07-01T00:00:01Z")}, want: "BACKDATED"},
		{name: "received before expiry", facts: Facts{Received: at("2026-07-01T00:00:00Z")}},
		{name: "expired is not backdated", trace: []string{`2026-03-01T12`, `2026-07-01T12`}, facts: Facts{Received: at("2026-08-01T00:00:00Z")}, want: "CARD_EXPIRED"},

		{name: "before issue", trace: []string{`2026-03-01T12`, `2025-12-31T12`}, want: "TIME_IMPLAUSIBLE"},
		{name: "before issue by a slow clock", trace: []string{`2026-03-01T12`, `2025-12-31T23`, `:00:00Z",
	"action"`, `:55:00Z",
	"action"`}},
		{name: "before issue by more", trace: []string{`2026-03-01T12`, `2025-12-31T23`, `:00:00Z",
	"action"`, `:54:59Z",
	"action"`}, want: "TIME_IMPLAUSIBLE"},
		{name: "after receipt", facts: Facts{Received: at("2026-03-01T11:54:59Z")}, want: "TIME_IMPLAUSIBLE"},
		{name: "within tolerance", facts: Facts{Received: at("2026-03-01T11:55:00Z")}},

		{name: "denied by trigger", trace: []string{`"low"`, `"high"`, unneeded, escalated}, want: "DENIED_BUT_ACTED"},
		{name: "denied by trigger, not executed", trace: []string{`"low"`, `"high"`, unneeded, escalated, execute, otherType}},
		{name: "denied by status", trace: []string{unneeded, `"required": true, "escalation_status": "denied"`}, want: "DENIED_BUT_ACTED"},
		{name: "denied by response", trace: []string{unneeded, `"required": true, "principal_response": {"decision": "Denied"}`}, want: "DENIED_BUT_ACTED"},
		{name: "denied and obeyed", trace: []string{unneeded, `"required": true, "escalation_status": "denied"`, execute, `"type": "deny"`}},

		{name: "value limit", trace: []string{cheap, `"amount": 501`}, want: "VALUE_LIMIT_EXCEEDED"},
		{name: "value limit of a transaction", trace: []string{cheap, `"transaction_value": "501"`}, want: "VALUE_LIMIT_EXCEEDED"},
		{name: "value at the limit", trace: []string{cheap, `"amount": 500`}},
		{name: "value escalated", trace: []string{cheap, `"amount": 501`, unneeded, escalated}},
		{name: "no limit", card: []string{`,
		"max_autonomous_value": {"amount": 500, "currency": "EUR"}`, ``}, trace: []string{cheap, `"amount": 501`}},
		{name: "another currency", trace: []string{cheap, `"amount": 5`, `"currency": "EUR"`, `"currency": "USD"`}, want: "VALUE_CURRENCY_MISMATCH"},
		{name: "the same currency in lower case", trace: []string{cheap, `"amount": 5`, `"currency": "EUR"`, `"currency": "eur"`}},
		{name: "the same currency in upper case", card: []string{`"EUR"`, `"Eur"`}, trace: []string{cheap, `"amount": 5`}},
		{name: "without a currency", trace: []string{cheap, `"amount": 5`, `"currency": "EUR"`, `"currency": null`}},
		{name: "an empty currency", trace: []string{cheap, `"amount": 5`, `"currency": "EUR"`, `"currency": ""`}},
		{name: "an empty currency above the limit", trace: []string{cheap, `"amount": 501`, `"currency": "EUR"`, `"currency": ""`}, want: "VALUE_LIMIT_EXCEEDED"},
		{name: "another currency in a second place", trace: []string{cheap, `"amount": 5`, `"q": "x"`, `"currency": "USD"`}, want: "VALUE_CURRENCY_MISMATCH AMBIGUOUS_FIELD"},
		{name: "another currency of nothing", trace: []string{`"purchase_value": 50,`, ``, `"currency": "EUR"`, `"currency": "USD"`}},
		{name: "no currency", trace: []string{cheap, `"amount": 501`, `"currency": "EUR"`, ``}, want: "VALUE_LIMIT_EXCEEDED"},

		{name: "approval broken", trace: []string{unneeded, approval(`"purchase_value <= 40"`)}, want: "APPROVAL_CONDITION_BROKEN"},
		{name: "approval kept", trace: []string{unneeded, approval(`"purchase_value <= 60", "missing < 1"`)}},
		{name: "approval broken in one place", trace: []string{unneeded, approval(`"price <= 40"`), `"q": "x"`, `"price": 50`, `"night"`, `"price": 30, "night"`},
			want: "APPROVAL_CONDITION_BROKEN AMBIGUOUS_FIELD"},
		{name: "approval in prose", trace: []string{unneeded, approval(`"only once"`)}, want: "unparsed_condition"},
		{name: "approval not yet used", trace: []string{unneeded, approval(`"purchase_value <= 40"`), execute, `"type": "escalate"`}},

		{name: "advisory", card: []string{`delegated_authority`, `advisory`}, want: "ADVISORY_EXECUTED"},
		{name: "advisory recommends", card: []string{`delegated_authority`, `advisory`}, trace: []string{execute, otherType}},
		{name: "advisory approved by the response alone", card: []string{`delegated_authority`, `advisory`},
			trace: []string{unneeded, `"required": true, "principal_response": {"decision": "Approved"}`}},
		{name: "advisory approved", card: []string{`delegated_authority`, `advisory`}, trace: []string{unneeded, approval(``)}},

		{name: "matches, claimed not to", trace: []string{cheap, bought, unneeded, escalated}, want: "TRIGGER_MISREPORTED"},
		{name: "contradictory claims", trace: []string{cheap, bought, noClaim, noClaim + `, {"trigger": "purchase_value > 100", "matched": true}`, unneeded, escalated}, want: "TRIGGER_MISREPORTED"},
		{name: "claim about an unknown trigger", trace: []string{`"purchase_value>100"`, `"other > 1"`, claimed, `"matched": true`}},

		{name: "ambiguous", trace: []string{`"q": "x"`, bought, noClaim, ``, unneeded, escalated}, want: "AMBIGUOUS_FIELD"},
		{name: "ambiguous and missed", trace: []string{`"q": "x"`, bought, noClaim, ``}, want: "MISSED_ESCALATION AMBIGUOUS_FIELD"},
		{name: "the same twice", trace: []string{`"q": "x"`, `"purchase_value": "50.0"`}},

		{name: "evasion", trace: []string{searchName, `"name": "fly"`, bounded, triggerCat}, want: "CATEGORY_EVASION"},
		{name: "no evasion: bounded", trace: []string{bounded, triggerCat}},
		{name: "no evasion: a trigger matches", trace: []string{searchName, `"name": "fly"`, bounded, triggerCat, cheap, bought, noClaim, ``, unneeded, escalated}},
		{name: "no evasion: forbidden", trace: []string{searchName, `"name": "delete"`, bounded, triggerCat}, want: "FORBIDDEN_ACTION"},

		{name: "uncomparable", trace: []string{cheap, `"purchase_value": "150 EUR"`}, want: "uncomparable"},
		{name: "unparsed", card: []string{`"night"`, `"night time"`}, want: "unparsed_condition"},
		{name: "close call", trace: []string{`"confidence": 0.8`, `"confidence": 0.3`, `"score": 0.9`, `"score": 0.34`}, want: "near_boundary near_boundary"},
		{name: "no close call", trace: []string{`"confidence": 0.8`, `"confidence": 0.35`, `"score": 0.9`, `"score": 0.35`}},
	} {
		c.run(t, j)
	}
}

func TestWhereFieldsAreLookedUp(t *testing.T) {
	j := judge(t)
	condition := func(text string) []string { return []string{`"night"`, text} }
	for _, c := range []verifyCase{
		{name: "action_type only from the action", card: condition(`"action_type == \"recommend\""`), trace: []string{`"night"`, `"action_type": "recommend", "night"`}},
		{name: "action_type", card: condition(`"action_type == \"execute\""`), want: "log_trigger"},
		{name: "action_name", card: condition(`"action_name matches \"^sea\""`), want: "log_trigger"},
		{name: "action_category", card: condition(`"action_category == 'bounded'"`), want: "log_trigger"},
		{name: "path in a room", card: condition(`"metadata.currency == \"EUR\""`), want: "log_trigger"},
		{name: "path from the root", card: condition(`"decision.confidence == 0.8 and action.parameters.q == \"x\""`), want: "log_trigger"},
		{name: "no path into an array", card: condition(`"decision.values_applied.x"`)},
		{name: "array", card: condition(`"decision.values_applied contains \"honesty\""`), want: "log_trigger"},
		{name: "a room does not hide the action", card: condition(`"action.type == \"execute\""`),
			trace: []string{`"night"`, `"action": {"type": "recommend"}, "night"`}, want: "AMBIGUOUS_FIELD log_trigger"},
		{name: "a present null", card: condition(`"risk == null"`), trace: []string{`"risk": "low"`, `"risk": null`}, want: "log_trigger"},
		{name: "an absent null", card: condition(`"risky == null or risky != null or risky"`)},
	} {
		c.run(t, j)
	}
}

func TestRecommendation(t *testing.T) {
	j := judge(t)
	for _, c := range []struct {
		name  string
		trace []string
		facts Facts
		want  schema.Recommendation
	}{
		{name: "clean", want: schema.Proceed},
		{name: "close call", trace: []string{`"confidence": 0.8`, `"confidence": 0.1`}, want: schema.Proceed},
		{name: "warning", trace: []string{`"night": false`, `"night": true`}, want: schema.Review},
		{name: "finding", facts: Facts{InForce: "ac-2"}, want: schema.Review},
		{name: "critical finding", trace: []string{`"agent-1"`, `"agent-2"`}, want: schema.Deny},
		{name: "violation", trace: []string{searchName, `"name": "fly"`}, want: schema.Deny},
	} {
		var v schema.Verdict
		j.Verify(admitted(t, replace(t, traceText, c.trace...)), compiled(t, cardText), c.facts, now, &v)
		if v.RecommendedAction != c.want {
			t.Errorf("%s: %s, want %s", c.name, v.RecommendedAction, c.want)
		}
	}
}

func TestVerdictIsComplete(t *testing.T) {
	trace, card := admitted(t, traceText), compiled(t, cardText)
	var v schema.Verdict
	judge(t).Verify(trace, card, Facts{}, now, &v)
	if v.Metadata.CardDigest != card.Card.Digest || v.Metadata.TraceDigest != trace.Digest || v.CardID != "ac-1" ||
		v.Metadata.EngineVersion != EngineVersion || v.Metadata.Profile != ProfileSpec || !v.Timestamp.Equal(now) {
		t.Errorf("got %+v", v)
	}
	if s := v.Metadata.Similarity; !slices.Equal(s.Similarities, []float64{v.SimilarityScore}) || s.MeanSimilarity != v.SimilarityScore || v.SimilarityScore == 0 {
		t.Errorf("similarity %v, details %+v", v.SimilarityScore, s)
	}
	if grounded, inferred := v.Metadata.GroundedClaims, v.Metadata.InferredClaims; grounded != 0 || inferred != 0 {
		t.Errorf("%d grounded and %d inferred claims in a text without claims", grounded, inferred)
	}
	judge(t).Verify(admitted(t, replace(t, traceText, `"selection_reasoning": "r"`, `"selection_reasoning": "cheaper [G], sooner [G], better [I]"`)), card, Facts{}, now, &v)
	if grounded, inferred := v.Metadata.GroundedClaims, v.Metadata.InferredClaims; grounded != 2 || inferred != 1 {
		t.Errorf("%d grounded claims, %d inferred, want 2 and 1", grounded, inferred)
	}
	encoded, err := json.Marshal(&v)
	if err != nil || !strings.Contains(string(encoded), `"violations":[]`) {
		t.Errorf("%s (%v)", encoded, err)
	}
}

func TestAbsentTriggersAreListed(t *testing.T) {
	var v schema.Verdict
	j, card := judge(t), compiled(t, cardText)
	j.Verify(admitted(t, replace(t, traceText, `"risk": "low", "night": false,`, ``)), card, Facts{}, now, &v)
	if !slices.Equal(v.Metadata.AbsentTriggers, []int{1, 2}) {
		t.Errorf("got %v", v.Metadata.AbsentTriggers)
	}
	if j.Verify(admitted(t, traceText), card, Facts{}, now, &v); len(v.Metadata.AbsentTriggers) != 0 {
		t.Errorf("of the trace before: %v", v.Metadata.AbsentTriggers)
	}
}

// Findings about messages are listed among the findings, with a severity.
func TestFindingsAboutMessages(t *testing.T) {
	facts := Facts{Messages: []schema.Remark{{Type: schema.SelfInstruction, Field: "context", Description: "d"}, {Type: schema.UngroundedClaim, Field: "decision", Description: "e"}}}
	var v schema.Verdict
	judge(t).Verify(admitted(t, traceText), compiled(t, cardText), facts, now, &v)
	want := []schema.Remark{
		{Type: schema.SelfInstruction, Severity: schema.SeverityHigh, Field: "context", Description: "d"},
		{Type: schema.UngroundedClaim, Severity: schema.SeverityHigh, Field: "decision", Description: "e"},
	}
	if !slices.Equal(v.Findings, want) || v.RecommendedAction != schema.Review || !v.Verified {
		t.Errorf("findings %+v, %s", v.Findings, v.RecommendedAction)
	}
}

// A description names the compared value and the bound.
func TestDescriptionsNameBothValues(t *testing.T) {
	j := judge(t)
	for _, c := range []struct {
		trace []string
		want  string
	}{
		{[]string{`"confidence": 0.8`, `"confidence": 0.3`}, "confidence 0.30 is below 0.35"},
		{[]string{`"score": 0.9`, `"score": 0.2`}, "score 0.20 of the selected alternative is below 0.35"},
		{[]string{cheap, `"amount": 501`}, "the value is above max_autonomous_value, 500 EUR, and was not escalated"},
		{[]string{cheap, `"amount": 5`, `"currency": "EUR"`, `"currency": "USD"`}, "the value is in another currency than max_autonomous_value, 500 EUR"},
	} {
		var v schema.Verdict
		j.Verify(admitted(t, replace(t, traceText, c.trace...)), compiled(t, cardText), Facts{}, now, &v)
		if all := slices.Concat(v.Findings, v.Warnings); len(all) != 1 || all[0].Description != c.want {
			t.Errorf("got %+v, want %s", all, c.want)
		}
	}
}

func TestUnknownCard(t *testing.T) {
	j, trace := judge(t), admitted(t, traceText)
	var v schema.Verdict
	j.Unknown(trace, now, &v)
	if v.Status != schema.StatusCardUnknown || v.Verified || v.RecommendedAction != schema.Review || v.CardID != "ac-1" || !v.Metadata.CardDigest.IsZero() {
		t.Errorf("got %+v", v)
	}
	if j.Verify(trace, compiled(t, cardText), Facts{}, now, &v); v.Status != schema.StatusJudged || v.Metadata.CardDigest.IsZero() {
		t.Errorf("once the card is there: %+v", v)
	}
	other := admitted(t, replace(t, traceText, `"tr-1"`, `"tr-2"`, searchName, `"name": "delete"`))
	j.Verify(other, compiled(t, cardText), Facts{}, now, &v)
	if j.Unknown(trace, now, &v); v.TraceID != "tr-1" || v.Verified || len(v.Violations)+len(v.Findings)+len(v.Metadata.ChecksPerformed) != 0 ||
		v.Metadata.TraceDigest != trace.Digest || v.Metadata.EngineVersion != EngineVersion {
		t.Errorf("after another trace: %+v", v)
	}
}

func TestManyUndeclaredValuesStayBounded(t *testing.T) {
	values := `"honesty"` + strings.Repeat(`, "x"`, 1000)
	var v schema.Verdict
	judge(t).Verify(admitted(t, replace(t, traceText, `"honesty"`, values)), compiled(t, cardText), Facts{}, now, &v)
	last := v.Violations[len(v.Violations)-1]
	if len(v.Violations) != maxUndeclared+1 || !strings.HasPrefix(last.Description, "968 more") {
		t.Errorf("%d violations, the last %+v", len(v.Violations), last)
	}
}
