package condition

import (
	"strings"
	"testing"
)

// fields is a Source over raw JSON values by name.
type fields map[string][]string

func (f fields) Values(field *Field, dst []Value) []Value {
	for _, raw := range f[field.Name] {
		dst = append(dst, JSON([]byte(raw)))
	}
	return dst
}

var sample = fields{
	"amount":        {`150`},
	"debt":          {`-20.5`},
	"numeric":       {`" 1e3 "`},
	"word":          {`"150 USD"`},
	"empty":         {`""`},
	"zero":          {`0`},
	"yes":           {`true`},
	"no":            {`false`},
	"nothing":       {`null`},
	"tags":          {`["pii", 7, "a\"b", null]`},
	"bag":           {`{"a": 1}`},
	"none":          {`[]`},
	"path":          {`"C:\\tmp"`},
	"action_type":   {`"delete"`},
	"action_name":   {`"purchase"`},
	"user.locale":   {`"en-US"`},
	"twice":         {`1`, `10`},
	"same":          {`100`, `"100.0"`},
	"five_or_no":    {`5`, `false`},
	"word_or_no":    {`"a"`, `false`},
	"empty_or_tags": {`""`, `["pii"]`},
}

func evaluate(t *testing.T, expression string) (*Evaluator, bool) {
	t.Helper()
	e, err := Parse(expression)
	if err != nil {
		t.Fatalf("Parse(%q): %v", expression, err)
	}
	ev := &Evaluator{Source: sample}
	ev.Reset()
	return ev, ev.Eval(e)
}

func TestEvalHolds(t *testing.T) {
	for _, expression := range []string{
		`amount > 100`, `amount >= 150`, `amount < 150.5`, `amount <= 1.5e2`, `amount == 150`, `amount != 151`,
		`amount > "100"`, `amount == "150"`, `debt < -20`, `debt == -20.5`,
		`numeric == 1000`, `numeric > 999`, `word > "149"`, `numeric > "999"`, `same >= "100.00"`, `action_type == "delete"`, `action_type != 'read'`,
		`yes`, `amount`, `word`, `tags`, `bag`, `none`, `yes == true`, `no == false`, `no != true`,
		`nothing == null`, `amount != null`, `amount != "x"`, `bag != 1`, `user.locale == "en-US"`,
		`tags contains "pii"`, `contains(tags, 7)`, `tags contains "7"`, `tags contains null`, `tags contains 'a"b'`,
		`word contains "USD"`, `contains(word, "")`, `word matches "^\d+ [A-Z]{3}$"`, `matches(word, "usd|USD")`,
		`path == "C:\\tmp"`, `path matches "^C:\\\\t"`,
		`no or yes`, `yes and amount > 1`, `yes or no and no`, `(no or yes) and yes`, ` ( ( yes ) ) `,
		`twice > 5`, `twice < 5`, `same == 100`,
	} {
		if _, held := evaluate(t, expression); !held {
			t.Errorf("%s: false, want true", expression)
		}
	}
}

func TestEvalDoesNotHold(t *testing.T) {
	for _, expression := range []string{
		`amount > 150`, `amount < 150`, `amount == 151`, `amount != 150`, `debt > 0`, `debt` + ` == 20.5`,
		`zero`, `empty`, `no`, `nothing`, `missing`, `missing == null`, `missing != null`, `missing > 1`,
		`missing contains "x"`, `matches(missing, ".*")`, `nothing != null`, `yes == "true"`, `yes == 1`, `zero == false`, `numeric < "9"`, `numeric == "1e3"`,
		`action_type == "DELETE"`, `tags contains "PII"`, `tags contains 8`, `word matches "^USD"`,
		`no and yes`, `(yes or no) and no`, `word > 100`, `bag > 1`, `yes > 0`, `nothing < 1`, `twice > 10`,
	} {
		if _, held := evaluate(t, expression); held {
			t.Errorf("%s: true, want false", expression)
		}
	}
}

func TestEvalNotes(t *testing.T) {
	for _, c := range []struct {
		expression              string
		absent                  bool
		ambiguous, uncomparable string
	}{
		{expression: `amount > 1`},
		{expression: `missing > 1`, absent: true},
		{expression: `amount > 1 or missing`, absent: true},
		{expression: `no and missing`, absent: true},
		{expression: `twice > 5`, ambiguous: "twice"},
		{expression: `same == 100`},
		{expression: `word > 100`, uncomparable: "word"},
		{expression: `nothing < 1 or yes > 0`, uncomparable: "nothing,yes"},
		{expression: `bag contains "a"`, uncomparable: "bag"},
		{expression: `amount matches "1"`, uncomparable: "amount"},
		{expression: `word == 150`},
	} {
		ev, _ := evaluate(t, c.expression)
		ambiguous, uncomparable := strings.Join(ev.Ambiguous, ","), strings.Join(ev.Uncomparable, ",")
		if ev.Absent != c.absent || ambiguous != c.ambiguous || uncomparable != c.uncomparable {
			t.Errorf("%s: absent %v, ambiguous %q, uncomparable %q; want %+v", c.expression, ev.Absent, ambiguous, uncomparable, c)
		}
	}
}

// Absent and Undecided concern the last expression, the lists all expressions since Reset.
func TestNotesAreAboutOneExpressionOrOneTrace(t *testing.T) {
	long := fields{"long": {`"` + strings.Repeat("x", MaxSubject+1) + `"`}, "twice": {`1`, `10`}, "amount": {`150`}}
	ev := &Evaluator{Source: long}
	ev.Reset()
	eval := func(condition string) {
		t.Helper()
		e, err := Parse(condition)
		if err != nil {
			t.Fatal(err)
		}
		ev.Eval(e)
	}
	if eval(`long matches "y"`); !ev.Undecided || ev.Absent {
		t.Errorf("of a text that was searched in part: undecided %v, absent %v", ev.Undecided, ev.Absent)
	}
	eval(`twice > 5`)
	eval(`amount > "many"`)
	if eval(`missing`); !ev.Undecided || !ev.Absent {
		t.Errorf("of an absent field: undecided %v, absent %v", ev.Undecided, ev.Absent)
	}
	if eval(`amount > 1`); ev.Undecided || ev.Absent {
		t.Errorf("after a field with a value: undecided %v, absent %v", ev.Undecided, ev.Absent)
	}
	if len(ev.Unsearched) != 1 || len(ev.Ambiguous) != 1 || len(ev.Uncomparable) != 1 {
		t.Errorf("of all expressions: %v, %v, %v", ev.Unsearched, ev.Ambiguous, ev.Uncomparable)
	}
	if ev.Reset(); len(ev.Unsearched)+len(ev.Ambiguous)+len(ev.Uncomparable) > 0 {
		t.Errorf("of the trace before: %v, %v, %v", ev.Unsearched, ev.Ambiguous, ev.Uncomparable)
	}
}

func TestEvalAllIsBrokenByOneValue(t *testing.T) {
	for expression, want := range map[string]bool{
		`twice <= 5`: false, `twice <= 10`: true, `missing <= 5`: true, `amount <= 100 and missing`: false,
	} {
		e, err := Parse(expression)
		if err != nil {
			t.Fatal(err)
		}
		ev := &Evaluator{Source: sample, Quantifier: All}
		ev.Reset()
		if got := ev.Eval(e); got != want {
			t.Errorf("%s: %v, want %v", expression, got, want)
		}
	}
}

func TestMatchesLooksOnlyAtABoundedText(t *testing.T) {
	megabyte := strings.Repeat("a", 1<<20)
	for _, c := range []struct {
		name, condition, text string
		holds, unknown        bool
	}{
		{"the end is not seen", `f matches "(a+)+$"`, megabyte, false, true},
		{"a match at the cut is none", `f matches "(a+)+$"`, megabyte + "!", false, true},
		{"what follows a boundary is not seen", `f matches "a+\b"`, megabyte, false, true},
		{"a match in the first part", `f matches "(a+)+"`, megabyte, true, false},
		{"a line that ends in the first part", `f matches "(?m)(a+)+$"`, "aa\n" + megabyte, true, false},
		{"beyond the part looked at", `f matches "!"`, megabyte + "!", false, true},
		{"the whole text", `f matches "(a+)+$"`, megabyte[:MaxSubject], true, false},
		{"the whole text, all of it", `f matches "^a+$"`, megabyte[:MaxSubject-1] + "!", false, false},
	} {
		e, err := Parse(c.condition)
		if err != nil {
			t.Fatal(err)
		}
		ev := &Evaluator{Source: constant(Text(c.text))}
		ev.Reset()
		if held := ev.Eval(e); held != c.holds || (len(ev.Unsearched) > 0) != c.unknown {
			t.Errorf("%s: %v, unsearched %v", c.name, held, ev.Unsearched)
		}
	}
}

// The bound applies to the work of all patterns on one trace together.
func TestMatchesSharesABudget(t *testing.T) {
	e, err := Parse(`f matches "(x|a?){50}y"`)
	if err != nil {
		t.Fatal(err)
	}
	ev := &Evaluator{Source: constant(Text(strings.Repeat("a", 1<<10)))}
	ev.Reset()
	for range 50 {
		ev.Eval(e)
	}
	if ev.budget < 0 || len(ev.Unsearched) != 1 {
		t.Errorf("after 50 costly patterns %d steps are left, unsearched %v", ev.budget, ev.Unsearched)
	}
}

// A condition that names a field twice holds if one of its values satisfies it, not if each
// test uses another value.
func TestTestsOfOneFieldAgreeOnAValue(t *testing.T) {
	source := fields{"v": {`3`, `10`}, "w": {`"a"`, `"b"`}, "x": {`1`, `2`, `3`, `4`}, "one": {`1`}, "two": {`2`}, "three": {`3`}}
	for _, c := range []struct {
		condition  string
		quantifier Quantifier
		want       bool
	}{
		{`v > 5 and v < 8`, Any, false},
		{`v > 5 and v < 12`, Any, true},
		{`v > 5 and w == "a"`, Any, true},
		{`v < 5 and w == "a" and (v > 5 or w == "b")`, Any, false},
		{`v == 3 and w == "b" and x == 4 and x > 3 and v < 4 and w != "a"`, Any, true},
		{`x > 1 and x < 3`, Any, true},
		{`x > 2 and x < 3`, Any, false},
		{`v < 5 or v > 8`, All, true},
		{`v < 5 or v > 10`, All, false},
		{`v < 5 or w == "a"`, All, false},
		{`one and two and three and v > 5 and v < 8`, Any, false}, // fields that are named once do not count
	} {
		e, err := Parse(c.condition)
		if err != nil {
			t.Fatal(err)
		}
		ev := &Evaluator{Source: source, Quantifier: c.quantifier}
		ev.Reset()
		if got := ev.Eval(e); got != c.want {
			t.Errorf("%s: %v, want %v", c.condition, got, c.want)
		}
		if len(ev.Ambiguous) == 0 {
			t.Errorf("%s: the ambiguity is not noted", c.condition)
		}
	}
}

// Beyond its bound, agreement is not checked, and the stricter reading applies.
func TestAgreementIsBounded(t *testing.T) {
	impossible := strings.TrimSuffix(strings.Repeat("v > 5 and v < 5 or ", 200), " or ")
	e, err := Parse(impossible)
	if err != nil {
		t.Fatal(err)
	}
	for quantifier, stands := range map[Quantifier]bool{Any: true, All: false} {
		ev := &Evaluator{Source: fields{"v": {`3`, `10`}}, Quantifier: quantifier}
		ev.Reset()
		if ev.Eval(e) {
			t.Errorf("%d: the condition holds, but no value makes it hold", quantifier)
		}
		for range maxTrials / 400 {
			ev.Eval(e)
		}
		if got := ev.Eval(e); got != stands {
			t.Errorf("%d: beyond the bound is %v, want %v", quantifier, got, stands)
		}
		if ev.Reset(); ev.Eval(e) {
			t.Errorf("%d: the bound of one trace also limits the next", quantifier)
		}
	}
}

// Checking agreement costs one test for each test of the expression and each combination of
// values. Exactly maxTrials tests are allowed between two Resets.
func TestAgreementIsSearchedUpToItsBound(t *testing.T) {
	e, err := Parse(`v > 5 and v < 5`)
	if err != nil {
		t.Fatal(err)
	}
	const trials = 2 * 2 // tests times values
	ev := &Evaluator{Source: fields{"v": {`3`, `10`}}}
	ev.Reset()
	for i := range maxTrials / trials {
		if ev.Eval(e) {
			t.Fatalf("evaluation %d: the condition holds, but no value makes it hold", i)
		}
	}
	if !ev.Eval(e) {
		t.Error("beyond the limit each test is evaluated alone, and both must hold")
	}
}

func TestEvalDoesNotAllocate(t *testing.T) {
	e, err := Parse(`amount > 100 and (action_type == "delete" or tags contains "pii") and word matches "^1"`)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]Value{"amount": JSON([]byte(`150`)), "action_type": Text("delete"),
		"tags": JSON([]byte(`["a","pii"]`)), "word": Text("150")}
	ev := &Evaluator{Source: fixed(values)}
	ev.Reset()
	ev.Eval(e)
	if n := testing.AllocsPerRun(100, func() { ev.Reset(); ev.Eval(e) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

type fixed map[string]Value

func (f fixed) Values(field *Field, dst []Value) []Value {
	if v, ok := f[field.Name]; ok {
		return append(dst, v)
	}
	return dst
}

func BenchmarkEval(b *testing.B) {
	e, err := Parse(`amount > 100 and action_type == "delete"`)
	if err != nil {
		b.Fatal(err)
	}
	ev := &Evaluator{Source: fixed{"amount": JSON([]byte(`150`)), "action_type": Text("delete")}}
	b.ReportAllocs()
	for b.Loop() {
		ev.Reset()
		ev.Eval(e)
	}
}
