package condition

import (
	"strings"
	"testing"
)

// AAP section 4.9 writes action_type == "purchase", but section 5.4 has no such type: the
// condition means the action's name.
func TestActionTypeMeansTheNameWhereItCanMeanNothingElse(t *testing.T) {
	purchase := fields{"action_type": {`"execute"`}, "action_name": {`"purchase"`}}
	named := fields{"action_type": {`"recommend"`}, "action_name": {`"execute"`}}
	for _, c := range []struct {
		condition  string
		source     fields
		quantifier Quantifier
		want       bool
	}{
		{`action_type == "purchase"`, purchase, Any, true},
		{`action_type == "purchase"`, purchase, All, true}, // a condition of an approval
		{`action_type == "sale"`, purchase, Any, false},
		{`action_type == "sale"`, purchase, All, false},
		{`action_type != "purchase"`, purchase, Any, false},
		{`action_type != "purchase"`, purchase, All, false},
		{`action_type != "sale"`, purchase, Any, true},
		{`action_type == "execute"`, purchase, Any, true},
		{`action_type == "execute" and action_type == "purchase"`, purchase, Any, true},
		{`action_type contains "purch"`, purchase, Any, true},
		{`contains(action_type, "sale")`, purchase, Any, false},
		{`action_type matches "^(purchase|sale)$"`, purchase, Any, true},
		{`action_type == "execute"`, named, Any, false}, // a type of section 5.4 means the type
		{`action_type != "execute"`, named, Any, true},
		{`action_type contains "exec"`, named, Any, false},
		{`action_type matches "^exe"`, named, Any, false},
		{`action_type > "dz"`, fields{"action_type": {`"deny"`}, "action_name": {`"purchase"`}}, Any, false}, // an ordering compares types
		{`action_type == 7`, fields{"action_type": {`"deny"`}, "action_name": {`"7"`}}, Any, false},
		{`action_type`, fields{"action_name": {`"purchase"`}}, Any, false},
		{`action.type == "purchase"`, fields{"action.type": {`"execute"`}, "action_name": {`"purchase"`}}, Any, false}, // a path has no second meaning
	} {
		e, err := Parse(c.condition)
		if err != nil {
			t.Fatal(err)
		}
		ev := &Evaluator{Source: c.source, Quantifier: c.quantifier}
		ev.Reset()
		if got := ev.Eval(e); got != c.want || len(ev.Ambiguous) != 0 {
			t.Errorf("%s, quantifier %d: %v, want %v; ambiguous %v", c.condition, c.quantifier, got, c.want, ev.Ambiguous)
		}
	}
}

func TestUndecided(t *testing.T) {
	for condition, want := range map[string]bool{
		`amount > 200`: false, `missing > 1`: true, `word > 100`: true, `amount > 200 or missing`: true, `amount == "x"`: false,
		`amount contains 1`: true, `amount matches "1"`: true, `twice > 50`: false,
	} {
		if ev, _ := evaluate(t, condition); ev.Undecided != want {
			t.Errorf("%s: undecided %v, want %v", condition, ev.Undecided, want)
		}
	}
}

func TestObservedValues(t *testing.T) {
	for _, c := range []struct {
		condition, observed string
		refuted             bool
	}{
		{`amount > 100`, `150`, false},
		{`amount > 100`, `150.0`, false},
		{`amount > 100`, `"150"`, false},
		{`amount > 100`, `45`, true},
		{`amount > 100`, `"45"`, true},
		{`amount > 100 and amount < 200`, `45`, true},
		{`amount > 100`, `"150 USD"`, false}, // another form: nothing to compare
		{`amount > 100`, `true`, false},      // possibly the result of the comparison
		{`amount > 100`, `null`, false},
		{`amount > 100`, `{"amount":45}`, false},
		{`missing > 100`, `45`, false},
		{`amount > 100 or zero`, `45`, false}, // the field is not known
		{`numeric > 1`, `"1000"`, false},
		{`twice > 5`, `10`, false},
		{`twice > 5`, `7`, true},
		{`yes`, `false`, true},
		{`amount`, `true`, false}, // a field alone: its truth value
		{`zero`, `true`, false},
		{`word == "150 USD"`, `"15 USD"`, true},
		{`tags contains "pii"`, `[ "pii", 7, "a\"b", null ]`, false},
		{`tags contains "pii"`, `[]`, true},
		{`five_or_no`, `true`, false}, // the truth value of one of its values
		{`five_or_no > 3`, `true`, true},
		{`word_or_no`, `"b"`, true},                 // not a truth value
		{`empty_or_tags`, `["sms"]`, true},          // not a text
		{`word == "150 USD"`, `" 150 usd "`, false}, // the same text in another form
		{`word contains "USD"`, `"USD"`, false},     // the part that matched
		{`word contains "EUR"`, `"150"`, false},     // a part that lacks the text searched for
		{`word contains "EUR"`, `"150 EUR"`, true},
		{`word matches "^\\d+"`, `"150"`, false},
		{`word matches "^\\d+"`, `"USD"`, true},
		{`word contains "USD" or word contains "EUR"`, `"EUR"`, false}, // the test is not known
		{`tags contains "pii"`, `["pii"]`, false},
		{`tags contains "pii"`, `[7]`, true},
		{`tags == 7`, `["pii"]`, true},
		{`action_type == "execute"`, `"purchase"`, false}, // the name: section 4.9 uses the field for it
		{`action_type == "execute"`, `"sale"`, true},
		{`action_type == "purchase"`, `"delete"`, false},
		{`action_type == "purchase"`, `"sale"`, true},
	} {
		e, err := Parse(c.condition)
		if err != nil {
			t.Fatal(err)
		}
		ev := &Evaluator{Source: sample}
		ev.Reset()
		if got := ev.Refutes(e, JSON([]byte(c.observed))); got != c.refuted {
			t.Errorf("%s, observed %s: refuted %v, want %v", c.condition, c.observed, got, c.refuted)
		}
	}
}

// An observation that could not be searched for, because the budget is used up, refutes
// nothing.
func TestUnsearchedTextsRefuteNothing(t *testing.T) {
	e, err := Parse(`f matches "(x|a?){50}y$"`)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("a", 10<<10) + "y"
	ev := &Evaluator{Source: constant(Text(text))}
	ev.Reset()
	if ev.Refutes(e, Text(text[1:])) {
		t.Error("a value whose search was incomplete is refuted")
	}
	if len(ev.Unsearched) == 0 {
		t.Error("the whole text was searched: this test proves nothing")
	}
	if ev.Reset(); !ev.Refutes(e, Text("aaa")) {
		t.Error("a part that does not match is not refuted")
	}
}
