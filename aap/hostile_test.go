package aap

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema"
)

// triggered returns cardText with n additional triggers of one condition.
func triggered(t testing.TB, n int, condition string) string {
	t.Helper()
	quoted, err := json.Marshal(condition)
	if err != nil {
		t.Fatal(err)
	}
	trigger := fmt.Sprintf(`{"condition": %s, "action": "escalate", "reason": ""},`, quoted)
	return replace(t, cardText, `{"condition": "purchase_value > 100"`, strings.Repeat(trigger, n)+`{"condition": "purchase_value > 100"`)
}

// Hostile conditions are refused at registration. Each fault has its place, the column and the
// reason.
func TestHostileConditionsAreRefused(t *testing.T) {
	const pointer = "/autonomy_envelope/escalation_triggers/0/condition"
	parentheses := func(n int) string { return strings.Repeat("(", n) + "a" + strings.Repeat(")", n) }
	for condition, want := range map[string]string{
		parentheses(10_000): "column 1: 20001 bytes, a condition may have 4096",
		parentheses(2_000):  "column 33: parentheses are nested deeper than 32",
		`a matches "(` + strings.Repeat("b", 400) + `){1000}"`: "column 11: the pattern is too large once its repetitions are written out",
		`a matches "` + strings.Repeat("(", 500) + `"`:         "column 11: pattern: error parsing regexp: missing closing )",
		`a == "` + strings.Repeat("x", 5_000) + `"`:            "column 1: 5007 bytes, a condition may have 4096",
		strings.Repeat("a", 4_000) + " b":                      "column 4002: and, or, or the end is expected here, not `b`",
		"a " + strings.Repeat("b", 4_000):                      "column 3: and, or, or the end is expected here, not `bbbb",
		"a == \x00":                                            `column 6: '\x00' has no meaning in a condition`,
	} {
		_, err := Register([]byte(triggered(t, 1, condition)))
		var refusal *schema.Refusal
		if !errors.As(err, &refusal) || len(refusal.Faults) != 1 {
			t.Errorf("%.40q: %v", condition, err)
			continue
		}
		if fault := refusal.Faults[0]; fault.Pointer != pointer || !strings.HasPrefix(fault.Message, want) || len(fault.Message) > 700 {
			t.Errorf("%.40q: %s: %s", condition, fault.Pointer, fault.Message)
		}
	}
	if _, err := Register([]byte(triggered(t, 450, parentheses(32)))); err != nil {
		t.Errorf("450 triggers of the greatest depth: %v", err)
	}
}

// A pattern that never ends in other engines gets a result on the longest text of a trace. The
// verdict reports the part that was not searched, and the next trace is judged.
func TestEndlessPatternOnALongText(t *testing.T) {
	card := compiled(t, triggered(t, 1, `note matches "(a+)+$"`))
	long := replace(t, traceText, `"q": "x"`, `"note": "`+strings.Repeat("a", 700<<10)+`!"`)
	j := judge(t)
	var v schema.Verdict
	j.Verify(admitted(t, long), card, Facts{}, now, &v)
	last := v.Warnings[len(v.Warnings)-1]
	if !v.Verified || v.RecommendedAction != schema.Review || last.Type != schema.WarnUncomparable || last.Field != "note" ||
		!strings.Contains(last.Description, "longer than the patterns on this trace may look at") {
		t.Errorf("the long text: %+v", v)
	}
	j.Verify(admitted(t, replace(t, traceText, `"q": "x"`, `"note": "aa"`)), card, Facts{}, now, &v)
	if remarks(&v) != schema.MissedEscalation {
		t.Errorf("the next trace: %s", remarks(&v))
	}
}

// Prior traces are checked with the session: ids of the trace itself, in a circle, unknown or
// in the thousands do not change the verdict on the trace.
func TestPriorTracesDoNotTouchTheVerdict(t *testing.T) {
	j, card := judge(t), compiled(t, cardText)
	var want schema.Verdict
	j.Verify(admitted(t, traceText), card, Facts{}, now, &want)
	for name, ids := range map[string]string{
		"itself": `["tr-1"]`, "a circle": `["tr-2", "tr-1", "tr-2"]`, "foreign": `["of another agent", "\u0000", ""]`,
		"thousands": `["x"` + strings.Repeat(`, "tr-1"`, 50_000) + `]`, "none": `[]`, "null": `null`,
	} {
		trace := admitted(t, replace(t, traceText, `"session_id": "s"`, `"session_id": "s", "prior_trace_ids": `+ids))
		var got schema.Verdict
		j.Verify(trace, card, Facts{}, now, &got)
		got.Metadata.TraceDigest = want.Metadata.TraceDigest
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
		}
	}
}

// BenchmarkHostileCard judges a trace of 700 KB by a card with the maximum number of triggers,
// all with conditions of maximum cost.
func BenchmarkHostileCard(b *testing.B) {
	long := strings.Repeat("a", 340<<10)
	trace := admitted(b, replace(b, traceText, `"q": "x"`, `"note": "`+long+`", "more": "`+long+`"`))
	shadows := admitted(b, replace(b, traceText, `"q": "x"`, `"k": 1, "l": 1`, `"risk": "low"`, `"k": 5, "l": 5`, `"currency": "EUR"`, `"k": 9, "l": 9`))
	shadowed := compiled(b, triggered(b, 45, strings.TrimSuffix(strings.Repeat("k > 5 and k < 5 or l > 5 and l < 5 or ", 90), " or ")))
	j := judge(b)
	var v schema.Verdict
	b.Run("shadowed", func(b *testing.B) {
		for b.Loop() {
			j.Verify(shadows, shadowed, Facts{}, now, &v)
		}
	})
	for name, condition := range map[string]string{
		"matches":  `note matches "([a-z]*[a-y]*[a-x]*){30}Z" or more matches "(a+)+$"`,
		"contains": `note contains "` + strings.Repeat("a", 100) + `b" or more contains "b"`,
		"look-ups": strings.Repeat("decision.x.y or ", 20) + "z",
		"short":    strings.TrimSuffix(strings.Repeat("x or ", 100), " or "),
	} {
		card := compiled(b, triggered(b, 450, condition))
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				j.Verify(trace, card, Facts{}, now, &v)
			}
		})
	}
}
