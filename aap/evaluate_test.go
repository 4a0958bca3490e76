package aap

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/aap/condition"
)

// Broken returns the conditions of an approval (AAP section 5.6) that a trace breaks. A missing
// field breaks none. If a field has several values, one that breaks the condition is enough.
func TestBroken(t *testing.T) {
	var conditions []*condition.Expr
	for _, text := range []string{`purchase_value <= 40`, `purchase_value <= 60`, `missing < 1`, ``, `risk == "high"`, `currency == "EUR"`} {
		expr, err := condition.Parse(text)
		if err != nil {
			expr = nil
		}
		conditions = append(conditions, expr)
	}
	trace := replace(t, traceText, `"q": "x"`, `"currency": "USD"`)
	if got := Broken(conditions, admitted(t, trace)); !slices.Equal(got, []int{0, 4, 5}) {
		t.Errorf("broken conditions: %v", got)
	}
	if got := Broken(conditions[1:3], admitted(t, trace)); got != nil {
		t.Errorf("broken conditions: %v", got)
	}
	searched, err := condition.Parse(`text matches "^a*b$"`)
	if err != nil {
		t.Fatal(err)
	}
	if got := Broken([]*condition.Expr{searched}, admitted(t, replace(t, traceText, `"q": "x"`, `"text": "aab"`))); got != nil {
		t.Errorf("conditions broken by a pattern that matches: %v", got)
	}
}

// An evaluation reports the state of the fields that it uses (AAP section 4.6).
func TestEvaluate(t *testing.T) {
	trace := admitted(t, replace(t, traceText, `"q": "x"`, `"q": "x", "purchase_value": 150`))
	for text, want := range map[string]string{
		`purchase_value > 100`: `{"matched":true,"absent":false,"ambiguous":["purchase_value"]}`,
		`missing > 1`:          `{"matched":false,"absent":true}`,
		`risk > 5`:             `{"matched":false,"absent":false,"uncomparable":["risk"]}`,
		`q matches "^x$"`:      `{"matched":true,"absent":false}`,
	} {
		expr, err := condition.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(Evaluate(expr, trace))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}
