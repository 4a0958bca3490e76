package condition

import (
	"fmt"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// Different numbers that are equal or infinite as 64-bit floats.
func TestDecimalsAreExact(t *testing.T) {
	for _, c := range [][2]string{ // the first is less
		{"9007199254740992", "9007199254740993"},
		{"-9007199254740993", "-9007199254740992"},
		{"1000000000000000000", "1000000000000000001"}, // the wei of an ether, and one more
		{"0.1", "0.10000000000000000001"},
		{"0", "1e-400"},
		{"-1e-400", "-0"},
		{"1e-401", "1e-400"},
		{"1e400", "1.0000000001e400"},
		{"-1e999999999999999999999", "1"},
		{"1e-999999999999999999999", "1"},
		{"1", "1e999999999999999999999"}, // exponents beyond 64 bits, and digits that increase them
		{"1", "123e9223372036854775807"},
		{"0.001e-9223372036854775808", "1"},
	} {
		if got, back := compareDecimals(c[0], c[1]), compareDecimals(c[1], c[0]); got != -1 || back != 1 {
			t.Errorf("%s and %s: %d, in reverse order %d", c[0], c[1], got, back)
		}
	}
	for _, c := range [][2]string{
		{"0", "-0.00e7"}, {"150", "1.5e2"}, {"0.00150", "15E-4"}, {"100", "0.1e+3"}, {"000", "0"}, {"0e999999999999999999999", "0"},
		{"9007199254740993", "9007199254740993.0"}, {"12300e-2", "0123"},
	} {
		if got := compareDecimals(c[0], c[1]); got != 0 {
			t.Errorf("%s and %s: %d, want them equal", c[0], c[1], got)
		}
	}
}

// Decimals have the order of rational numbers.
func TestDecimalsAreOrderedAsRationals(t *testing.T) {
	drawn := rapid.StringMatching(`-?[0-9]{1,20}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawn.Draw(t, "a"), drawn.Draw(t, "b")
		if rapid.Bool().Draw(t, "near") {
			b = a + "1"
		}
		x, okX := new(big.Rat).SetString(a)
		y, okY := new(big.Rat).SetString(b)
		if !okX || !okY {
			t.Skip("an exponent that big.Rat does not read")
		}
		if got, want := compareDecimals(a, b), x.Cmp(y); got != want {
			t.Fatalf("%s and %s: %d, want %d", a, b, got, want)
		}
	})
}

func TestConditionsCompareExactly(t *testing.T) {
	for condition, want := range map[string]bool{
		`wei > 9007199254740992`: true, `wei >= 9007199254740994`: false, `wei == 9007199254740992`: false, `wei != 9007199254740992`: true,
		`wei == 9007199254740993`: true, `wei < "9007199254740994"`: true, `spelt > 1000000000000000000`: true, `spelt == 1000000000000000000`: false,
		`tiny`: true, `list contains 9007199254740992`: false, `list contains 9007199254740993.0`: true,
	} {
		e, err := Parse(condition)
		if err != nil {
			t.Fatal(err)
		}
		ev := &Evaluator{Source: fields{"wei": {`9007199254740993`}, "spelt": {`"1000000000000000001"`}, "tiny": {`1e-400`}, "list": {`[9007199254740993]`}}}
		ev.Reset()
		if got := ev.Eval(e); got != want {
			t.Errorf("%s: %v, want %v", condition, got, want)
		}
	}
}

// A field with the same value in two places is not ambiguous, however the value is written.
func TestStructuresAreEqualByContent(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`[1,"x"]`, "[ 1,\n\t\"x\" ]", true},
		{`{"a":1,"b":[true,null]}`, `{ "b": [true, null], "a": 1.0 }`, true},
		{`["\u0078"]`, `["x"]`, true},
		{`{"a":{"x":1,"y":2}}`, `{"a":{"y":2,"x":1}}`, true},
		{`[]`, `[ ]`, true},
		{`{}`, `{ }`, true},
		{`[1,2]`, `[2,1]`, false},
		{`[1]`, `[1,1]`, false},
		{`[9007199254740993]`, `[9007199254740992]`, false},
		{`[1]`, `["1"]`, false},
		{`{"a":1}`, `{"A":1}`, false},
		{`{"a":1}`, `{"a":1,"b":2}`, false},
		{`[true]`, `[false]`, false},
		{`[]`, `{}`, false},
		{`[[1],2]`, `[[1,2]]`, false},
		{`[1]`, `[1]`, true},
	} {
		ev := &Evaluator{Source: fields{"x": {c.a, c.b}}}
		ev.Reset()
		e, err := Parse("x")
		if err != nil {
			t.Fatal(err)
		}
		ev.Eval(e)
		if got := len(ev.Ambiguous) == 0; got != c.want {
			t.Errorf("%s and %s: equal %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

// Invalid JSON equals only the same bytes.
func TestBrokenStructuresAreNotEqual(t *testing.T) {
	for _, c := range [][2]string{{`[1`, `[1]`}, {`[1`, `[1 `}, {`{"a":tru}`, `{"a":true}`}} {
		if a, b := []byte(c[0]), []byte(c[1]); equalStructures(a, b) || equalStructures(b, a) {
			t.Errorf("%s and %s are equal", a, b)
		}
	}
}

// A text counts as a number if it consists of a number, signed or not, and white space around
// it.
func TestTextsThatSpellNumbers(t *testing.T) {
	for text, want := range map[string]bool{
		"5": true, " 5\n": true, "+5": true, "-5": true, "+5e+1": true, "5e-1": true, "0.5": true,
		"": false, "+": false, "-": false, "+-5": false, "--5": false, "5e": false, "5e+": false, "5.": false, ".5": false, "5 5": false, "0x5": false,
	} {
		if _, got := Text(text).number(); got != want {
			t.Errorf("%q is a number: %v, want %v", text, got, want)
		}
	}
}

func BenchmarkCompareDecimals(b *testing.B) {
	for _, pair := range [][2]string{{"150", "100"}, {"9007199254740993", "9007199254740992"}} {
		b.Run(fmt.Sprint(len(pair[0])), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				compareDecimals(pair[0], pair[1])
			}
		})
	}
}
