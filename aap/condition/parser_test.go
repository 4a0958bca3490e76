package condition

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseNamesTheColumn(t *testing.T) {
	for expression, want := range map[string]string{
		``:                          "column 1: a field is expected here, not the end",
		`   `:                       "column 4: a field is expected here, not the end",
		`amount >`:                  "column 9: a value is expected here, not the end",
		`amount = 5`:                "column 8: `=` is not an operator: the operators are == != < <= > >=",
		`amount <> 5`:               "column 9: a value is expected here, not `>`",
		`amount > 5 USD`:            "column 12: and, or, or the end is expected here, not `USD`",
		`amount > 5.`:               "column 10: a number such as -1.5 is expected here",
		`amount > 5x`:               "column 10: a number such as -1.5 is expected here",
		`amount > -`:                "column 10: a number such as -1.5 is expected here",
		`amount > 1e999`:            "column 10: `1e999` is beyond the range of a 64-bit float",
		`type == delete`:            `column 9: a value is expected here; put a text in quotes: "delete"`,
		`type == "del`:              "column 9: the text that begins here has no closing quote",
		`"x" == type`:               "column 1: a field is expected here, not a text",
		`(a or b`:                   "column 8: `)` is expected here, not the end",
		`a or b)`:                   "column 7: and, or, or the end is expected here, not `)`",
		`a and`:                     "column 6: a field is expected here, not the end",
		`and`:                       "column 1: a field is expected here, not `and`",
		`true`:                      "column 1: a field is expected here, not `true`",
		"a > 5\u00a0USD":            "column 7: and, or, or the end is expected here, not `USD`",
		`a > +5`:                    "column 5: '+' has no meaning in a condition",
		`a == “x”`:                  "column 6: '“' has no meaning in a condition",
		`a and not b`:               "column 11: and, or, or the end is expected here, not `b`",
		`a AND b`:                   "column 3: and, or, or the end is expected here, not `AND`",
		`a.b.1`:                     "column 5: a field name is expected here",
		`lower(a) == "x"`:           "column 1: `lower` is not a function: the functions are contains and matches",
		`true.x == or`:              "column 11: a value is expected here; put a text in quotes: \"or\"",
		`contains == 5`:             "column 1: a field is expected here, not `contains`",
		`contains(null, 5)`:         "column 10: a field is expected here, not `null`",
		`a contains b`:              "column 12: a value is expected here; put a text in quotes: \"b\"",
		`a == (5)`:                  "column 6: a value is expected here, not `(`",
		`5 < a`:                     "column 1: a field is expected here, not `5`",
		`()`:                        "column 2: a field is expected here, not `)`",
		`a == "x\"`:                 "column 6: the text that begins here has no closing quote",
		`a == "x\`:                  "column 6: the text that begins here has no closing quote",
		`a > 1e`:                    "column 5: a number such as -1.5 is expected here",
		`a > 1e+`:                   "column 5: a number such as -1.5 is expected here",
		`a..b`:                      "column 3: a field name is expected here",
		`a.`:                        "column 3: a field name is expected here",
		`é == "x" ?`:                "column 10: '?' has no meaning in a condition",
		`contains(a "x")`:           "column 12: `,` is expected here, not a text",
		`contains("x", a)`:          "column 10: a field is expected here, not a text",
		`matches(a, 5)`:             "column 12: a pattern in quotes is expected here, not `5`",
		`a matches "("`:             "column 11: pattern: error parsing regexp: missing closing ): `(`",
		`a matches "(a{900}){900}"`: "column 11: pattern: error parsing regexp: invalid repeat count: `{900}`",
		`a matches "(a{40}b){25}"`:  "column 11: the pattern is too large once its repetitions are written out",
	} {
		_, err := Parse(expression)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || err.Error() != want {
			t.Errorf("%q:\n got %v\nwant %s", expression, err, want)
		}
	}
}

func TestParseIsBounded(t *testing.T) {
	for name, expression := range map[string]string{
		"length":  "a == \"" + strings.Repeat("x", MaxLength) + `"`,
		"printed": "a == '" + strings.Repeat(`"`, MaxLength/2) + `'`,
		"depth":   strings.Repeat("(", MaxDepth+1) + "a" + strings.Repeat(")", MaxDepth+1),
		"deeper":  strings.Repeat("(", 10_000) + "a" + strings.Repeat(")", 10_000),
		"repeats": `a matches "(` + strings.Repeat("ab", 200) + `){1000}"`,
		"pattern": `a matches "` + strings.Repeat("x", MaxPattern+1) + `"`,
	} {
		if _, err := Parse(expression); err == nil {
			t.Errorf("%s: exceeds the limit but parses", name)
		}
	}
	for name, expression := range map[string]string{
		"depth":   strings.Repeat("(", MaxDepth) + "a" + strings.Repeat(")", MaxDepth),
		"length":  strings.Repeat("a", MaxLength),
		"printed": `a=="` + strings.Repeat("x", MaxLength-len(`a == ""`)) + `"`,
		"pattern": `a matches "` + strings.Repeat("x", MaxPattern) + `"`,
		"repeats": fmt.Sprintf(`a matches "x{%d}"`, maxInstructions/2), // the repetition and its operand
		"classes": `a matches "^[A-Za-z0-9_.-]{64}$"`,                  // each class is one instruction
	} {
		if _, err := Parse(expression); err != nil {
			t.Errorf("%s: at the limit: %v", name, err)
		}
	}
}

// A message shows at most 64 bytes of a text, in whole characters, and marks the cut.
func TestMessagesShowABoundedText(t *testing.T) {
	for text, want := range map[string]string{
		strings.Repeat("a", 64):       strings.Repeat("a", 64),
		strings.Repeat("a", 65):       strings.Repeat("a", 64) + "…",
		strings.Repeat("a", 63) + "é": strings.Repeat("a", 63) + "…",
	} {
		_, err := Parse("x == " + text)
		if err == nil || !strings.HasSuffix(err.Error(), `"`+want+`"`) {
			t.Errorf("%d bytes: %v", len(text), err)
		}
	}
}

func TestAndBindsTighterThanOr(t *testing.T) {
	for expression, want := range map[string]string{
		`a or b and c`:           `a or b and c`,
		`(a or b) and c`:         `(a or b) and c`,
		`a or (b and c)`:         `a or b and c`,
		`((a or b) or c)`:        `a or b or c`,
		`contains( a.b , "x" )`:  `a.b contains "x"`,
		`matches(a, '\d "\\"')`:  `a matches "\\d \"\\\""`,
		`a>-1.50 and b!=null`:    `a > -1.50 and b != null`,
		`a == true or b==false`:  `a == true or b == false`,
		`big > 9007199254740993`: `big > 9007199254740993`,
	} {
		e, err := Parse(expression)
		if err != nil {
			t.Fatalf("Parse(%q): %v", expression, err)
		}
		if e.String() != want {
			t.Errorf("%s prints as %s, want %s", expression, e, want)
		}
	}
}

// anyNode draws an expression tree of the form that the parser builds.
func anyNode(t *rapid.T, depth int) node {
	kind := rapid.IntRange(0, 2).Draw(t, "kind")
	if depth == 0 || kind == 0 {
		return anyTest(t)
	}
	operands := make([]node, rapid.IntRange(2, 3).Draw(t, "operands"))
	for i := range operands {
		operands[i] = anyNode(t, depth-1)
	}
	return join(kind == 1, operands)
}

func anyTest(t *rapid.T) node {
	name := rapid.StringMatching(`[a-zé_][a-z0-9_-]{0,6}(\.[a-z_][a-z0-9]{0,3}){0,2}`).
		Filter(func(s string) bool { _, err := (&parser{}).field(token{text: s}); return err == nil }).Draw(t, "field")
	n := &test{field: newField(name), op: operator(rapid.IntRange(int(truthy), int(matches)).Draw(t, "op"))}
	switch n.op {
	case truthy:
	case matches:
		n.value = Text(rapid.StringMatching(`[a-z.*\\\\"']{0,8}`).
			Filter(func(s string) bool { _, err := newPattern(s); return err == nil }).Draw(t, "pattern"))
		n.pattern, _ = newPattern(n.value.Text)
	default:
		n.value = rapid.OneOf(
			rapid.Map(rapid.String(), Text),
			rapid.Map(rapid.Float64(), func(f float64) Value { return Value{Kind: Number, Text: strconv.FormatFloat(f, 'g', -1, 64)} }),
			rapid.Map(rapid.Bool(), func(b bool) Value { return Value{Kind: Bool, Bool: b} }),
			rapid.Just(Value{Kind: Null}),
		).Draw(t, "value")
	}
	return n
}

func TestPrintingAndParsingIsIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := newExpr(anyNode(t, 3))
		if len(want.String()) > MaxLength {
			t.Skip("the expression exceeds the limit")
		}
		got, err := Parse(want.String())
		if err != nil {
			t.Fatalf("Parse(%q): %v", want, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q parses as %q", want, got)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`purchase_value > 100`, `action_type == "delete"`, `shares_personal_data`,
		`a > 1 and a < 5 or a matches '^\w+$' and a`, `contains(a, 'it''s')`, "a\u00a0>\u20031E-7", `x == '"' or y == "'"`,
		`((a or b) and (c or d)) or ((e))`, `a == -0 or a == 1e308 or a == 4.9e-324`, `and.or == null and matches.x contains "\\"`,
		`a.b >= -1.5e3 and (c or not_d) or contains(e, 'x\'y')`, `matches(f, "(a+)+$")`, `g != null`, `((`, `"`, "\xff", `é.ü == "\"`,
	} {
		f.Add(seed, `{"a":1}`)
	}
	f.Fuzz(func(t *testing.T, expression, text string) {
		e, err := Parse(expression)
		if err != nil {
			return
		}
		printed := e.String()
		again, err := Parse(printed)
		if err != nil || !reflect.DeepEqual(again, e) || again.String() != printed {
			t.Fatalf("%q prints as %q, which parses as %v, %v", expression, printed, again, err)
		}
		ev := &Evaluator{Source: constant(Text(text))}
		ev.Reset()
		if again, once := ev.Eval(e), ev.Eval(e); again != once && len(ev.Unsearched) == 0 {
			t.Fatalf("two evaluations of %q differ", expression)
		}
	})
}

// constant is a Source in which every field has one value.
type constant Value

func (c constant) Values(_ *Field, dst []Value) []Value { return append(dst, Value(c)) }
