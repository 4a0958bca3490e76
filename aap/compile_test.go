package aap

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema"
)

func TestRegisterReportsEveryCondition(t *testing.T) {
	_, err := Register([]byte(replace(t, cardText, `purchase_value > 100`, `purchase_value > `, `"night"`, `"night and (day"`)))
	var refusal *schema.Refusal
	if !errors.As(err, &refusal) || refusal.Reason != schema.ReasonInvalidCard {
		t.Fatalf("got %v", err)
	}
	want := []schema.Fault{
		{Pointer: "/autonomy_envelope/escalation_triggers/0/condition", Message: "column 18: a value is expected here, not the end"},
		{Pointer: "/autonomy_envelope/escalation_triggers/2/condition", Message: "column 15: `)` is expected here, not the end"},
	}
	if fmt.Sprint(refusal.Faults) != fmt.Sprint(want) {
		t.Errorf("got %v", refusal.Faults)
	}
	if _, err := Register([]byte(`{}`)); !errors.As(err, &refusal) || len(refusal.Faults) < 5 {
		t.Errorf("a card without members: %v", err)
	}
	if c, err := Register([]byte(cardText)); err != nil || len(c.triggers) != 3 {
		t.Errorf("a valid card: %v", err)
	}
}

// The length of an id bounds the digits of a limit. A card with more digits is refused, and a
// limit of exactly that length is enforced.
func TestLimitsOfManyDigits(t *testing.T) {
	limit := func(digits int) []byte {
		return []byte(replace(t, cardText, `"amount": 500, "currency": "EUR"`, `"amount": 0.`+strings.Repeat("9", digits-2)+`, "currency": "`+strings.Repeat(`\"`, schema.MaxIDBytes)+`"`))
	}
	c, err := Register(limit(schema.MaxIDBytes))
	if err != nil || c.limit == nil {
		t.Errorf("the longest limit: %v", err)
	}
	for _, digits := range []int{schema.MaxIDBytes + 1, 10 * schema.MaxIDBytes} {
		var refusal *schema.Refusal
		if _, err := Register(limit(digits)); !errors.As(err, &refusal) || refusal.Reason != schema.ReasonInvalidCard {
			t.Errorf("a limit with %d digits: %v", digits, err)
		}
	}
}

// TestHostileCardIsJudgedInBounds judges a large trace by a card whose conditions search the
// whole trace.
func TestHostileCardIsJudgedInBounds(t *testing.T) {
	lookUps := strings.Repeat("decision.x.y.z matches '(a+)+$' or ", 14) + "decision.x"
	trigger := fmt.Sprintf(`{"condition": %q, "action": "log", "reason": ""},`, lookUps)
	card := compiled(t, replace(t, cardText, `{"condition": "purchase_value > 100"`, strings.Repeat(trigger, 450)+`{"condition": "purchase_value > 100"`))
	trace := admitted(t, replace(t, traceText, `"q": "x"`, `"q": "`+strings.Repeat("a", 700<<10)+`"`))
	j := judge(t)
	var v schema.Verdict
	j.Verify(trace, card, Facts{}, now, &v)
	if !j.fields.exhausted || !strings.Contains(remarks(&v), schema.WarnUncomparable) || v.RecommendedAction != schema.Review {
		t.Errorf("got %s, %s", remarks(&v), v.RecommendedAction)
	}
	if j.Verify(admitted(t, traceText), compiled(t, cardText), Facts{}, now, &v); remarks(&v) != "" {
		t.Errorf("the previous trace affects the verdict: %s", remarks(&v))
	}
}

// TestHostileTraceIsJudgedInBounds judges traces with one long value that many tests look up:
// it must not be read for each of them.
func TestHostileTraceIsJudgedInBounds(t *testing.T) {
	tests := strings.TrimSuffix(strings.Repeat("x > 1 or x contains '2' or ", 20), " or ")
	trigger := fmt.Sprintf(`{"condition": %q, "action": "log", "reason": ""},`, tests)
	card := compiled(t, replace(t, cardText, `{"condition": "purchase_value > 100"`, strings.Repeat(trigger, 20)+`{"condition": "purchase_value > 100"`))
	j := judge(t)
	var v schema.Verdict
	for name, value := range map[string]string{
		"number": "0." + strings.Repeat("1", 700<<10),
		"text":   `"` + strings.Repeat(" ", 700<<10) + `"`,
		"array":  "[" + strings.Repeat("1,", 340<<10) + "1]",
	} {
		trace := admitted(t, replace(t, traceText, `"q": "x"`, `"q": "x", "x": `+value))
		if j.Verify(trace, card, Facts{}, now, &v); !j.fields.exhausted {
			t.Errorf("the budget is not exhausted by tests of a long %s", name)
		}
	}
}

// A look-up costs what it reads: a text once, an array as often as it must be read element by
// element. The whole budget can be used.
func TestLookingUpCostsWhatIsRead(t *testing.T) {
	const size, tests = 200 << 10, 10
	card := compiled(t, replace(t, cardText, `"night"`, `"`+strings.TrimSuffix(strings.Repeat("x == 'y' or ", tests), " or ")+`"`))
	for value, exhausts := range map[string]bool{
		`"` + strings.Repeat("1", size) + `"`:          false,
		`{"a": "` + strings.Repeat("1", size) + `"}`:   false,
		"[" + strings.Repeat("1,", size/2-1) + "1]":    true,
		"[" + strings.Repeat("1,", size/2/10-1) + "1]": false,
	} {
		j := judge(t)
		var v schema.Verdict
		j.Verify(admitted(t, replace(t, traceText, `"metadata"`, `"x": `+value+`, "metadata"`)), card, Facts{}, now, &v)
		if j.fields.exhausted != exhausts {
			t.Errorf("%.5s…, %d bytes, %d times: exhausted %v, want %v", value, len(value), tests, j.fields.exhausted, exhausts)
		}
	}
	var f fields
	f.reset(&schema.Trace{})
	if !f.spend(lookupBudget) || f.exhausted || f.spend(1) || !f.exhausted || f.spend(0) {
		t.Errorf("a budget of %d is left, exhausted %v", f.budget, f.exhausted)
	}
}

// TestClaimsAreMatchedByConditionWithoutSpace compares claims of every length with triggers,
// two of which are equal.
func TestClaimsAreMatchedByConditionWithoutSpace(t *testing.T) {
	var index claimIndex
	a, b, again, empty := index.add("x > 1"), index.add("night"), index.add("x>1"), index.add("")
	claims := claims{on: []claim{{matched: true}, {matched: true}, {matched: true}, {matched: true}}, observed: []observation{{check: 7}}}
	claims.read(&index, []schema.TriggerCheck{
		{Trigger: strings.Repeat(" ", 1000) + "x\t>\n1 ", Matched: true, ValueObserved: []byte(`1`)}, {Trigger: "x>1", ValueObserved: []byte(`2`)},
		{Trigger: "x > 11", Matched: true}, {Trigger: "nigh", Matched: true}, {Trigger: "nights", Matched: true}, {Trigger: " ", ValueObserved: []byte(`3`)},
	})
	if a != again || len(claims.on) != 3 || claims.on[empty] != (claim{unmatched: true, observed: 3}) || claims.on[a] != (claim{true, true, 2}) || claims.on[b] != (claim{}) {
		t.Errorf("places %d, %d, %d: %+v", a, b, again, claims)
	}
	if o := claims.observed; len(o) != 3 || o[1].check != 1 || o[1].next != 1 || o[0].check != 0 || o[0].next != 0 {
		t.Errorf("observed %+v", o)
	}
}

// A verdict quotes values with a bound: a verdict is an alert, and the broker must accept it.
func TestLongValuesAreClippedInVerdicts(t *testing.T) {
	trace := admitted(t, traceText)
	trace.Decision.ValuesApplied = []string{strings.Repeat("\u0080", 300<<10)}
	var v schema.Verdict
	judge(t).Verify(trace, compiled(t, cardText), Facts{}, now, &v)
	if len(v.Violations) != 1 || len(v.Violations[0].Description) > 8*schema.MaxIDBytes {
		t.Errorf("%d violations", len(v.Violations))
	}
}

func TestThresholds(t *testing.T) {
	if err := DefaultThresholds().Validate(); err != nil {
		t.Error(err)
	}
	changed := DefaultThresholds()
	changed.BehavioralSimilarity = 0.1
	if _, err := NewJudge(changed); err == nil || !strings.Contains(err.Error(), "methodology") {
		t.Errorf("a changed threshold without a methodology: %v", err)
	}
	changed.Methodology = "calibrated on our own traces"
	j, err := NewJudge(changed)
	if err != nil {
		t.Fatal(err)
	}
	var v schema.Verdict
	j.Verify(admitted(t, traceText), compiled(t, cardText), Facts{}, now, &v)
	if v.Metadata.Methodology != changed.Methodology || v.Metadata.EngineVersion != EngineVersion+" (behavioral_similarity 0.1)" || len(v.Warnings) != 0 {
		t.Errorf("metadata %+v, warnings %v", v.Metadata, v.Warnings)
	}
	changed = DefaultThresholds() // except those that no verdict depends on
	changed.MinCoherence, changed.Methodology = 0.6, "calibrated on our own handshakes"
	if j, err = NewJudge(changed); err != nil {
		t.Fatal(err)
	}
	if j.Verify(admitted(t, traceText), compiled(t, cardText), Facts{}, now, &v); v.Metadata.Methodology != "" || v.Metadata.EngineVersion != EngineVersion {
		t.Errorf("under the published threshold: %+v", v.Metadata)
	}
	least := Thresholds{Methodology: "a test"}
	if err := least.Validate(); err != nil {
		t.Errorf("the least thresholds: %v", err)
	}
	err = Thresholds{BehavioralSimilarity: -1, MinCoherence: 1.5}.Validate()
	if got := strings.Count(fmt.Sprint(err), "\n") + 1; got != 3 {
		t.Errorf("%d faults, want 3: %v", got, err)
	}
}

func TestVerifyAllocatesNothingOnACleanTrace(t *testing.T) {
	j, card, trace := judge(t), compiled(t, cardText), admitted(t, traceText)
	var v schema.Verdict
	j.Verify(trace, card, Facts{}, now, &v)
	if n := testing.AllocsPerRun(100, func() { j.Verify(trace, card, Facts{}, now, &v) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
