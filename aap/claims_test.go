package aap

import (
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema"
)

// A trigger that is reported as matched although the trace does not show a match is excess
// caution: it gives a warning and no accusation.
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

		// Where the trace has nothing to evaluate, its own report decides.
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

// A report belongs to the trigger with its condition. White space makes no difference where
// none is needed, but it does inside a quoted text.
func TestReportsAreOfTheirOwnTrigger(t *testing.T) {
	j := judge(t)
	conditions := func(one, other string) []string {
		return []string{`{"condition": "night", "action": "log", "reason": "r"}`, `{"condition": ` + one + `, "action": "log", "reason": "r"}, {"condition": ` + other + `, "action": "log", "reason": "r"}`}
	}
	reports := func(one, other string) []string {
		return []string{noClaim, `{"trigger": ` + one + `, "matched": true}, {"trigger": ` + other + `, "matched": false}`}
	}
	texts := conditions(`"risk == 'l ow'"`, `"risk == 'low'"`)
	words := conditions(`"night or risk"`, `"nightorrisk"`)
	for _, c := range []verifyCase{
		{name: "another text", card: texts, trace: reports(`"risk=='low'"`, `" risk  == 'l ow'"`), want: "log_trigger"},
		{name: "another quote", card: conditions(`"risk == 'l\\' ow'"`, `"risk == 'l\\'ow'"`),
			trace: append(reports(`"risk=='l\\'ow'"`, `"risk=='l\\' ow'"`), `"low"`, `"l'ow"`), want: "log_trigger"},
		{name: "another field", card: words, trace: reports(`"night  or\trisk"`, `"nightorrisk"`), want: "log_trigger"},
		{name: "the same, the other way round", card: texts, trace: reports(`"risk=='l ow'"`, `"risk=='low'"`), want: "TRIGGER_MISREPORTED unconfirmed_trigger log_trigger"},
	} {
		c.run(t, j)
	}
}

// Conditions are equal if they differ only in white space that separates nothing.
func TestSameConditions(t *testing.T) {
	for _, c := range []struct {
		one, other string
		same       bool
	}{
		{`a>1`, " a\t>\r\n1 ", true},
		{`(a)and(b)`, `( a ) and ( b )`, true},
		{`contains(a,"x")`, `contains ( a , "x" )`, true},
		{`a  or   b`, `a or b`, true},
		{`a == 'x' or b`, `a=='x'or b`, true},
		{`a or b`, `aorb`, false},
		{`a == "x y"`, `a == "xy"`, false},
		{`a == "x  y"`, `a == "x y"`, false},
		{`a == "it's" and  b == 'c d'`, `a=="it's" and b=='c d'`, true},
		{`a == "it's" and b == 'c d'`, `a == "it's" and b == 'cd'`, false},
		{`a == 'x\' y'`, `a == 'x\'y'`, false},
		{`a == 'x\\' and b > 1`, `a=='x\\'and b>1`, true},
		{`a == 'x\\y' and b > 1`, `a=='x\\y'and b>1`, true},
		{`a == 'x' and b == 'y z'`, `a == 'x' and b == 'yz'`, false},
	} {
		one, _ := squeeze(nil, c.one, len(c.one))
		other, _ := squeeze(nil, c.other, len(c.other))
		if got := string(one) == string(other); got != c.same {
			t.Errorf("%s and %s: equal %v, want %v (%s, %s)", c.one, c.other, got, c.same, one, other)
		}
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
		{name: "about an unknown trigger", trace: []string{`"purchase_value>100"`, `"other > 1"`, claimed, observed(`45`)}},
	} {
		c.run(t, j)
	}

	var v schema.Verdict
	j.Verify(admitted(t, replace(t, traceText, noClaim, noClaim+again+`45}`)), compiled(t, cardText), Facts{}, now, &v)
	if len(v.Findings) != 1 || v.Findings[0].Field != "escalation.triggers_checked[1].value_observed" {
		t.Errorf("findings %+v", v.Findings)
	}
}

// Values that a trace claims to have observed are compared last, so they cannot exhaust the
// look-up budget of the triggers.
func TestObservationsHideNoTrigger(t *testing.T) {
	report := `, {"trigger": "purchase_value > 100", "matched": false, "value_observed": 50}`
	long := `"purchase_value": "` + strings.Repeat(" ", 200<<10) + `50"`
	many := replace(t, traceText, noClaim, noClaim+strings.Repeat(report, 5000), cheap, long, `"low"`, `"high"`)
	var v schema.Verdict
	j := judge(t)
	if j.Verify(admitted(t, many), compiled(t, cardText), Facts{}, now, &v); !j.fields.exhausted {
		t.Error("the budget suffices for the whole trace: this test proves nothing")
	}
	if got := remarks(&v); got != "MISSED_ESCALATION DENIED_BUT_ACTED uncomparable" {
		t.Errorf("got %s", got)
	}
	if j.Verify(admitted(t, traceText), compiled(t, cardText), Facts{}, now, &v); len(v.Findings) != 0 {
		t.Errorf("of the trace before: %v", v.Findings)
	}
}
