package pyjson

import (
	"bytes"
	"math"
	"strconv"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/plumbline/plumbline/schema/published"
	"pgregory.net/rapid"
)

// Text is written as Python's json.dumps writes it: a character beyond U+FFFF as two escapes.
func TestTextIsASCII(t *testing.T) {
	for text, want := range map[string]string{
		"a ~":                `"a ~"`,
		"\"\\/\b\f\n\r\t":    `"\"\\/\b\f\n\r\t"`,
		"\x00\x1f\x7f\u0080": `"\u0000\u001f\u007f\u0080"`,
		"\uffff\U00010000":   `"\uffff\ud800\udc00"`,
		"\U0001f600":         `"\ud83d\ude00"`,
		"\U0010ffff":         `"\udbff\udfff"`,
	} {
		if got := string(AppendString(nil, text)); got != want {
			t.Errorf("%q became %s, want %s", text, got, want)
		}
	}
}

// The test covers every byte at every place, next to every kind of neighbour.
func TestIsLine(t *testing.T) {
	for c := range 256 {
		for place := range 19 {
			for _, other := range []byte{' ', '~'} {
				raw := bytes.Repeat([]byte{other}, 19)
				raw[place] = byte(c)
				if got, want := isLine(raw), c < 0x7f && c != '\n' && c != '\r'; got != want {
					t.Fatalf("byte %#x at %d among %q: %v", c, place, other, got)
				}
			}
		}
	}
}

func TestLine(t *testing.T) {
	plain := []byte(`{"a": "b\u00e9"}`)
	if got := Line(plain); &got[0] != &plain[0] {
		t.Error("ASCII on one line was copied")
	}
	if got := string(Line([]byte("{\r\n\"a\":\"é\u2028😀\x7f\"}\n"))); got != `{"a":"\u00e9\u2028\ud83d\ude00\u007f"}` {
		t.Errorf("line %s", got)
	}
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.String().Draw(r, "text")
		raw, err := json.Marshal(text)
		if err != nil {
			r.Fatal(err)
		}
		var back string
		if err := json.Unmarshal(Line(raw), &back); err != nil || back != text || !utf8.Valid(raw) {
			r.Fatalf("%q came back as %q: %v", text, back, err)
		}
	})
}

func TestFloat(t *testing.T) {
	cases := map[float64]string{
		0: "0.0", math.Copysign(0, -1): "-0.0", 1: "1.0", -1.5: "-1.5", 1710252646: "1710252646.0", 1e-4: "0.0001",
		1e-5: "1e-05", 9999999999999998: "9999999999999998.0", 1e16: "1e+16", -1.2345678901234568e17: "-1.2345678901234568e+17", 1e100: "1e+100",
	}
	for f, want := range cases {
		if got := string(AppendFloat(nil, f)); got != want {
			t.Errorf("%g: %s, want %s", f, got, want)
		}
	}
}

func TestVectorsPythonFloat(t *testing.T) {
	text := published.Read(t, "conformance/aivs/python_float_repr.json")
	var vectors []struct {
		Bits   string `json:"bits"`
		Python string `json:"python"`
	}
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		bits, err := strconv.ParseUint(v.Bits, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(AppendFloat(nil, math.Float64frombits(bits))); got != v.Python {
			t.Errorf("%s: %s, Python prints %s", v.Bits, got, v.Python)
		}
	}
}
