package aap

import (
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema"
)

// A trigger that is reported as matched, and that the trace does not show to
// match, errs on the side of caution: a warning, and no ground to accuse anybody.
func TestOverCautionIsAWarning(t *testing.T) {
	j := judge(t)
	deny := `, {"trigger": "risk == \"high\"", "matched": true}`
	for _, c := range []verifyCase{
		{name: "escalated", trace: []string{claimed, `"matched": true`, unneeded, escalated}, want: "unconfirmed_trigger"},
		{name: "not escalated", trace: []string{claimed, `"matched": true`}, want: "unconfirmed_trigger"},
		{name: "both reports, no match", trace: []string{noClaim, noClaim + `, {"trigger": "purchase_value > 100", "matched": true}`, unneeded, escalated}, want: "unconfirmed_trigger"},
		{name: "deny, and executed", trace: []string{noClaim, noClaim + deny, unneeded, escalated}, want: "unconfirmed_trigger"},
		{name: "what it escalated evades nothing", trace: []string{claimed, `"matched": true`, unneeded, escalated, searchName, `"name": "fly"`, bounded, triggerCat},
			want: "unconfirmed_trigger"},
		{name: "a report alone is no escalation", trace: []string{claimed, `"matched": true`, searchName, `"name": "fly"`, bounded, triggerCat},
			want: "CATEGORY_EVASION unconfirmed_trigger"},

		// Where the trace has nothing to evaluate, its own report is all there is.
		{name: "absent, escalated", trace: []string{claimed, `"matched": true`, unneeded, escalated, `"purchase_value": 50,`, ``}, want: "unconfirmed_trigger"},
		{name: "absent, not escalated", trace: []string{claimed, `"matched": true`, `"purchase_value": 50,`, ``}, want: "MISSED_ESCALATION unconfirmed_trigger"},
		{name: "uncomparable, not escalated", trace: []string{claimed, `"matched": true`, cheap, `"purchase_value": "50 EUR"`},
			want: "MISSED_ESCALATION unconfirmed_trigger uncomparable"},
		{name: "absent and denied", trace: []string{noClaim, noClaim + deny, unneeded, escalated, `"risk": "low",`, ``}, want: "DENIED_BUT_ACTED unconfirmed_trigger"},
		{name: "unparsed", card: []string{`"night", "action": "log"`, `"night time", "action": "escalate"`},
			trace: []string{noClaim, noClaim + `, {"trigger": "night time", "matched": true}`}, want: "MISSED_ESCALATION unparsed_condition"},
	} {
		c.run(t, j)
	}
}

func TestFalseObservationsAreFindings(t *testing.T) {
	j := judge(t)
	observed := func(value string) string { return `"matched": false, "value_observed": ` + value }
	again := `, {"trigger": "purchase_value > 100", "matched": false, "value_observed": `
	for _, c := range []verifyCase{
		{name: "true", trace: []string{claimed, observed(`50`)}},
		{name: "true in another form", trace: []string{claimed, observed(`"5.0e1"`)}},
		{name: "false", trace: []string{claimed, observed(`45`)}, want: "TRIGGER_MISREPORTED"},
		{name: "false beyond a float", trace: []string{cheap, `"purchase_value": 9007199254740993`, claimed, `"matched": true, "value_observed": 9007199254740992`, unneeded, escalated},
			want: "TRIGGER_MISREPORTED"},
		{name: "false and misreported", trace: []string{cheap, bought, claimed, observed(`50`)}, want: "MISSED_ESCALATION TRIGGER_MISREPORTED TRIGGER_MISREPORTED"},
		{name: "false in a second report", trace: []string{noClaim, noClaim + again + `50}` + again + `51}` + again + `52}`}, want: "TRIGGER_MISREPORTED"},
		{name: "of a field that the trace does not have", trace: []string{claimed, observed(`45`), `"purchase_value": 50,`, ``}},
		{name: "of one place of two", trace: []string{claimed, observed(`40`), `"q": "x"`, `"purchase_value": 40`}, want: "AMBIGUOUS_FIELD"},
		{name: "nothing", trace: []string{claimed, observed(`null`)}},
		{name: "of nobody's trigger", trace: []string{`"purchase_value>100"`, `"other > 1"`, claimed, observed(`45`)}},
	} {
		c.run(t, j)
	}

	var v schema.Verdict
	j.Verify(admitted(t, replace(t, traceText, noClaim, noClaim+again+`45}`)), compiled(t, cardText), Facts{}, now, &v)
	if len(v.Findings) != 1 || v.Findings[0].Field != "escalation.triggers_checked[1].value_observed" {
		t.Errorf("findings %+v", v.Findings)
	}
}

// Values that a trace claims to have observed are compared last: they cannot use
// up what triggers may look up.
func TestObservationsHideNoTrigger(t *testing.T) {
	report := `, {"trigger": "purchase_value > 100", "matched": false, "value_observed": 50}`
	long := `"purchase_value": "` + strings.Repeat(" ", 200<<10) + `50"`
	many := replace(t, traceText, noClaim, noClaim+strings.Repeat(report, 5000), cheap, long, `"low"`, `"high"`)
	var v schema.Verdict
	j := judge(t)
	if j.Verify(admitted(t, many), compiled(t, cardText), Facts{}, now, &v); !j.fields.exhausted {
		t.Error("the budget holds for all of it: this test shows nothing")
	}
	if got := remarks(&v); got != "MISSED_ESCALATION DENIED_BUT_ACTED uncomparable" {
		t.Errorf("got %s", got)
	}
	if j.Verify(admitted(t, traceText), compiled(t, cardText), Facts{}, now, &v); len(v.Findings) != 0 {
		t.Errorf("of the trace before: %v", v.Findings)
	}
}
