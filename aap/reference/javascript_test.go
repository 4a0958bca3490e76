package reference

import (
	"math"
	"testing"
)

func TestNumbersAsText(t *testing.T) {
	for _, c := range []struct {
		f    float64
		want string
	}{
		{0, "0"}, {math.Copysign(0, -1), "0"}, {150, "150"}, {0.1, "0.1"}, {1.5e-7, "1.5e-7"}, {1e-6, "0.000001"},
		{1e20, "100000000000000000000"}, {1e21, "1e+21"}, {-2.5e30, "-2.5e+30"}, {math.Inf(-1), "-Infinity"}, {math.NaN(), "NaN"},
	} {
		if got := formatNumber(c.f); got != c.want {
			t.Errorf("formatNumber(%v) = %s, want %s", c.f, got, c.want)
		}
	}
}

func TestToFixedRoundsExactTiesUp(t *testing.T) {
	for _, c := range []struct {
		f    float64
		want string
	}{
		{0.125, "0.13"}, {-0.125, "-0.13"}, {0.375, "0.38"}, {0.005, "0.01"}, {0.015, "0.01"}, {1.005, "1.00"},
		{0.3449, "0.34"}, {0, "0.00"}, {-0.001, "-0.00"}, {1e21, "1e+21"},
	} {
		if got := toFixed(c.f, 2); got != c.want {
			t.Errorf("toFixed(%v) = %s, want %s", c.f, got, c.want)
		}
	}
}

func TestParseFloatTakesAPrefix(t *testing.T) {
	for text, want := range map[string]float64{
		"150 USD": 150, "0x20": 0, "1e3": 1000, "\u00a0 -7.5x": -7.5, ".5": 0.5, "5.": 5, "Infinity!": math.Inf(1), "1e999": math.Inf(1),
	} {
		if got := parseFloat(text); got != want {
			t.Errorf("parseFloat(%q) = %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{"", "true", "USD 150", "infinity", "e5"} {
		if got := parseFloat(text); !math.IsNaN(got) {
			t.Errorf("parseFloat(%q) = %v, want NaN", text, got)
		}
	}
}

func TestNumberOfAnything(t *testing.T) {
	for _, c := range []struct {
		v    any
		want float64
	}{
		{nil, 0}, {true, 1}, {"", 0}, {" 12 ", 12}, {"0x1f", 31}, {[]any{}, 0}, {[]any{7.0}, 7}, {2.5, 2.5},
	} {
		if got := (value{v: c.v}).number(); got != c.want {
			t.Errorf("number(%v) = %v, want %v", c.v, got, c.want)
		}
	}
	for _, v := range []any{Undefined{}, objectOf(), "12 USD", "1_000", "0x_1", []any{1.0, 2.0}} {
		if got := (value{v: v}).number(); !math.IsNaN(got) {
			t.Errorf("number(%v) = %v, want NaN", v, got)
		}
	}
}

func TestTextOfAnything(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{nil, "null"}, {Undefined{}, "undefined"}, {false, "false"}, {[]any{"a", nil, 7.0}, "a,,7"}, {objectOf(), "[object Object]"},
	} {
		if got := (value{v: c.v}).string(); got != c.want {
			t.Errorf("string(%v) = %q, want %q", c.v, got, c.want)
		}
	}
}

func TestStringify(t *testing.T) {
	v := []any{"a\"b\u2028<", []any{1.0, nil, true, math.Inf(1), math.Copysign(0, -1)}, objectOf("b", 1.0, "10", 2.0, "a", "x", "9", nil)}
	const want = "[\"a\\\"b\u2028<\",[1,null,true,null,0],{\"9\":null,\"10\":2,\"b\":1,\"a\":\"x\"}]"
	if got := stringify(v); got != want {
		t.Errorf("stringify = %s, want %s", got, want)
	}
}

func TestAnObjectThatHidesToStringHasNoText(t *testing.T) {
	for _, convert := range []func(value){
		func(n value) { n.number() }, func(n value) { _ = n.string() }, func(n value) { n.milliseconds() },
	} {
		err := func() (err error) {
			defer catch(&err)
			convert(value{[]any{objectOf("toString", "x")}, "place"})
			return nil
		}()
		if err == nil {
			t.Error("no error for a value that cannot be converted")
		}
	}
}

func TestPlus(t *testing.T) {
	for _, c := range []struct{ a, b, want any }{
		{1.0, 2.0, 3.0}, {1.0, nil, 1.0}, {true, true, 2.0}, {0.0, "0.9", "00.9"}, {"a", nil, "anull"}, {1.0, []any{}, "1"},
		{1.0, objectOf(), "1[object Object]"},
	} {
		if got := (value{v: c.a}).plus(value{v: c.b}).v; got != c.want {
			t.Errorf("%v + %v = %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

func TestBuiltInMembersOfValues(t *testing.T) {
	for _, c := range []struct {
		v    any
		name string
		want any
	}{
		{"a😀", "length", 3.0}, {"ab", "1", "b"}, {"ab", "01", Undefined{}}, {"ab", "2", Undefined{}}, {"", "search", function{}},
		{[]any{7.0}, "length", 1.0}, {[]any{7.0}, "0", 7.0}, {[]any{}, "values", function{}}, {[]any{}, "search", Undefined{}},
		{1.0, "toFixed", function{}}, {true, "toFixed", Undefined{}}, {false, "valueOf", function{}},
		{objectOf("toString", 1.0), "toString", 1.0}, {objectOf(), "__proto__", function{}}, {nil, "toString", Undefined{}},
	} {
		if got := (value{v: c.v}).try(c.name).v; got != c.want {
			t.Errorf("%v.%s is %v, want %v", c.v, c.name, got, c.want)
		}
	}
}

func TestLowerCaseOfTheDottedI(t *testing.T) {
	if got := words("İSTANBUL K\u212a\u212aL"); len(got) != 2 || got[0] != "stanbul" || got[1] != "kkkl" {
		t.Errorf("words %q", got)
	}
}

func TestDates(t *testing.T) {
	const march = 1772323200000 // 2026-03-01T00:00:00Z
	for text, want := range map[string]float64{
		"2026-03-01":                    march,
		"2026-03":                       march,
		"2026-03-01T00:00:00Z":          march,
		"2026-03-01T02:00:00+02:00":     march,
		"2026-02-28T19:00:00.000-05:00": march,
		"2026-02-28T24:00:00Z":          march,
		"2026-03-01T00:00:00.1239Z":     march + 123,
		"2026-03-01 00:00":              march,
		"2026-02-29":                    march, // overflows into March, as in the reference's engine
		"Mar 1, 2026":                   march,
		"1 march 2026 0:00 AM":          march,
		"3/1/26":                        march,
		"2026/3/1":                      march,
		"Sun, 01 Mar 2026 01:00 +0100":  march,
		"Sun Mar 01 2026 02:00:00.0 GMT+02:00 (EET)": march,
		"2026-02-28 19:00 EST":                       march,
		"never 3 1 2026":                             march, // words before the first number are ignored
		"mar 2026":                                   march,
		"+002026-03":                                 march,
		"1/1":                                        978307200000, // in 2001
		"-000000-01-01":                              978307200000, // there is no year -0
		"1/1/49":                                     2493072000000,
		"1/1/50":                                     -631152000000,
		"+275760-09-13":                              8.64e15,
		"0::1 1/1/1970":                              1000,
		"1/1/2026 10:00 +0530 +3:":                   1767250800000, // the minutes of the first offset do not count
		"1970-01-01T00:00:00Z":                       0,
	} {
		if got := (value{v: text}).milliseconds(); got != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
	for _, v := range []any{"never", "2026-13-01", "2026-03-01T25:00:00Z", "", "+275760-09-13T00:00:00.001Z",
		"2026-03-01T24:01Z", "2026-03-01T10", "2026-03-01T10:00:60Z", "1 2 3 4", "1/1/2026 13:00 pm", "1 never", "never1", "2026-03-01)",
		"1/1/2026 10:00 +12345", "2026-03-01T10:00:00.Z", "2026-03-01T10:00+24:00", Undefined{}, objectOf(), 1e300} {
		if got := (value{v: v}).milliseconds(); !math.IsNaN(got) {
			t.Errorf("%v is %v, want an invalid date", v, got)
		}
	}
	if got := (value{v: nil}).milliseconds(); got != 0 {
		t.Errorf("null is %v, want 0", got)
	}
}
