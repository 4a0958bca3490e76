package aap

import (
	"fmt"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema"
)

// low_behavioral_similarity occurs on traces without violations, below the threshold and not at
// it.
func TestSimilarityAtTheThreshold(t *testing.T) {
	card := compiled(t, cardText)
	off := replace(t, traceText, searchName, `"name": "fly"`, `"category": "bounded"`, `"category": "escalation_trigger"`)
	for _, c := range []struct {
		name      string
		threshold float64
		trace     string
		want      int
	}{
		{"at 1", 1, traceText, 0},
		{"at the threshold", 0.7071, off, 0},
		{"below it by the last decimal", 0.7072, off, 1},
		{"above the published one", 0.50, off, 0},
		{"nothing that the card declares", 0.50, replace(t, off, `["honesty"]`, `[]`), 1},
		{"a threshold of 0", 0, replace(t, off, `["honesty"]`, `[]`), 0},
		{"a violation", 1, replace(t, traceText, searchName, `"name": "fly"`), 0},
	} {
		thresholds := DefaultThresholds()
		thresholds.BehavioralSimilarity, thresholds.Methodology = c.threshold, "a test"
		j, err := NewJudge(thresholds)
		if err != nil {
			t.Fatal(err)
		}
		var v schema.Verdict
		j.Verify(admitted(t, c.trace), card, Facts{}, now, &v)
		found := 0
		for _, warning := range v.Warnings {
			if warning.Type == schema.WarnLowBehavioralSimilarity && strings.Contains(warning.Description, fmt.Sprint(c.threshold)) {
				found++
			}
		}
		if found != c.want || found != len(v.Warnings) {
			t.Errorf("%s: score %v, violations %v: warnings %v, want %d", c.name, v.SimilarityScore, v.Violations, v.Warnings, c.want)
		}
	}
}

// A trace within its card gets no warning, however much else the card allows.
func TestOrdinaryTracesHaveNoWarnings(t *testing.T) {
	for _, actions := range []int{1, 10, 40, 200} {
		bounded := `"search"`
		for i := range actions {
			bounded += fmt.Sprintf(`, "tool_%d"`, i)
		}
		var v schema.Verdict
		judge(t).Verify(admitted(t, traceText), compiled(t, replace(t, cardText, `"search", "compare"`, bounded)), Facts{}, now, &v)
		if len(v.Warnings) != 0 || v.SimilarityScore != 1 {
			t.Errorf("%d more bounded actions: score %v, warnings %v", actions, v.SimilarityScore, v.Warnings)
		}
	}
}

// One verdict lists a limited number of undeclared values and counts the rest.
func TestLimitOfListedUndeclaredValues(t *testing.T) {
	for values, want := range map[int]int{maxUndeclared: maxUndeclared, maxUndeclared + 1: maxUndeclared + 1, 4 * maxUndeclared: maxUndeclared + 1} {
		applied := `"v0"`
		for i := 1; i < values; i++ {
			applied += fmt.Sprintf(`, "v%d"`, i)
		}
		var v schema.Verdict
		judge(t).Verify(admitted(t, replace(t, traceText, `["honesty"]`, "["+applied+"]")), compiled(t, cardText), Facts{}, now, &v)
		if len(v.Violations) != want {
			t.Errorf("%d undeclared values: %d violations, want %d", values, len(v.Violations), want)
		}
	}
}

// A value within the length of an id is quoted whole; a longer one is cut.
func TestLongValuesAreCut(t *testing.T) {
	for length, cut := range map[int]bool{schema.MaxIDBytes: false, schema.MaxIDBytes + 1: true} {
		value := strings.Repeat("x", length)
		var v schema.Verdict
		judge(t).Verify(admitted(t, replace(t, traceText, "honesty", value)), compiled(t, cardText), Facts{}, now, &v)
		if got := v.Violations[0].Description; strings.Contains(got, "…") != cut || strings.Contains(got, value) == cut {
			t.Errorf("%d bytes: cut %v, want %v: %.40s…", length, !cut, cut, got)
		}
	}
}

func TestConditionsOfAnApprovalAreBounded(t *testing.T) {
	for conditions, want := range map[int]string{maxApprovalConditions: "", maxApprovalConditions + 1: "unparsed_condition"} {
		list := strings.TrimSuffix(strings.Repeat(`"purchase_value < 60", `, conditions), ", ")
		approved := `"required": true, "escalation_status": "approved", "principal_response": {"conditions": [` + list + `]}`
		c := verifyCase{name: fmt.Sprint(conditions), trace: []string{unneeded, approved}, want: want}
		c.run(t, judge(t))
	}
}

// Conditions of a denial have no effect.
func TestConditionsOfADenial(t *testing.T) {
	denied := `"required": true, "principal_response": {"decision": "denied", "conditions": ["purchase_value < 40"]}`
	c := verifyCase{name: "denied", trace: []string{unneeded, denied}, want: schema.DeniedButActed}
	c.run(t, judge(t))
}

func TestEntriesOfActionLists(t *testing.T) {
	j := judge(t)
	for _, c := range []verifyCase{
		{name: "an entry in blanks is not its trimmed name", card: []string{`"search"`, `" search "`}, want: schema.UnboundedAction},
		{name: "an entry with a comma, whole", card: []string{`"search"`, `"search, then stop"`}, trace: []string{searchName, `"name": "search, then stop"`}},
		{name: "an entry with a comma, in part", card: []string{`"search"`, `"search, then stop"`}, want: schema.UnboundedAction},
		{name: "a forbidden entry with a comma", card: []string{`"delete"`, `"wipe, then stop"`}, trace: []string{searchName, `"name": "wipe, then stop"`},
			want: "UNBOUNDED_ACTION FORBIDDEN_ACTION CATEGORY_MISMATCH"},
		{name: "an entry without a name", card: []string{`"search"`, `": search"`}, want: schema.UnboundedAction},
	} {
		c.run(t, j)
	}
}

// An unknown member of the root counts where the context, its metadata and the parameters have
// none of that name.
func TestRootIsLookedUpLast(t *testing.T) {
	c := verifyCase{name: "night", trace: []string{`"trace_id"`, `"night": true, "trace_id"`}}
	c.run(t, judge(t))
	c = verifyCase{name: "night", trace: []string{`"trace_id"`, `"night": true, "trace_id"`, `"night": false,`, ``}, want: "log_trigger"}
	c.run(t, judge(t))
}

func TestTheValueLimitItself(t *testing.T) {
	j := judge(t)
	for _, c := range []verifyCase{
		{name: "a transaction at the limit", trace: []string{cheap, `"transaction_value": 500`}},
		{name: "a purchase at the limit", card: []string{`purchase_value > 100`, `purchase_value > 1000`}, trace: []string{cheap, `"purchase_value": 500`, noClaim, ``}},
		{name: "a purchase above the limit", card: []string{`purchase_value > 100`, `purchase_value > 1000`},
			trace: []string{cheap, `"purchase_value": 500.01`, noClaim, ``}, want: schema.ValueLimitExceeded},
		{name: "a limit without a currency", card: []string{`"amount": 500, "currency": "EUR"`, `"amount": 500`}},
		{name: "a limit without a currency exceeded", card: []string{`"amount": 500, "currency": "EUR"`, `"amount": 40`}, want: schema.ValueLimitExceeded},
	} {
		c.run(t, j)
	}
}

// The revocation is part of a verdict's identity exactly where it led to a finding.
func TestVerdictHasTheRevocation(t *testing.T) {
	j, card, trace := judge(t), compiled(t, cardText), admitted(t, traceText)
	for _, c := range []struct {
		revoked, received string
		stands            bool
	}{
		{"2026-03-01T12:00:00Z", "2026-03-01T12:00:01Z", true},
		{"2026-03-01T12:00:01Z", "2026-03-01T12:00:02Z", true}, // possibly backdated
		{"2026-03-01T12:00:02Z", "2026-03-01T12:00:01Z", false},
	} {
		var v schema.Verdict
		revoked := at(c.revoked)
		j.Verify(trace, card, Facts{RevokedAt: revoked, Received: at(c.received)}, now, &v)
		if got := v.Metadata.CardRevokedAt.Equal(revoked); got != c.stands || got != (len(v.Findings) == 1) {
			t.Errorf("%+v: revocation %v, findings %v", c, v.Metadata.CardRevokedAt, v.Findings)
		}
	}
}

func TestAConditionThatDoesNotParseSaysWhy(t *testing.T) {
	var v schema.Verdict
	judge(t).Verify(admitted(t, traceText), compiled(t, replace(t, cardText, `"night"`, `"night >"`)), Facts{}, now, &v)
	if len(v.Warnings) == 0 || !strings.Contains(v.Warnings[0].Description, "trigger `night >` cannot be evaluated: ") || !strings.Contains(v.Warnings[0].Description, "column") {
		t.Errorf("warnings %+v", v.Warnings)
	}
}
