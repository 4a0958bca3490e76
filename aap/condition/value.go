package condition

import (
	"bytes"
	"strings"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

// Kind is the type of a Value.
type Kind uint8

// The kinds of JSON value.
const (
	Null Kind = iota + 1
	Bool
	Number
	String
	Array
	Object
)

// Value is a JSON value of a field or of a comparison.
type Value struct {
	Kind Kind
	Bool bool
	Text string // of a String, unquoted; of a Number, its decimal digits as written
	Raw  []byte // of an Array or Object
}

// Text returns the value of a string.
func Text(s string) Value { return Value{Kind: String, Text: s} }

// JSON returns the value of raw JSON, which must be valid and without surrounding white space.
// The value aliases raw.
func JSON(raw []byte) Value {
	switch raw[0] {
	case 'n':
		return Value{Kind: Null}
	case 't', 'f':
		return Value{Kind: Bool, Bool: raw[0] == 't'}
	case '"':
		return Text(unquote(raw))
	case '[':
		return Value{Kind: Array, Raw: raw}
	case '{':
		return Value{Kind: Object, Raw: raw}
	}
	return Value{Kind: Number, Text: view(raw)}
}

func unquote(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return view(quoted[1 : len(quoted)-1])
	}
	plain, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil {
		return view(quoted) // not valid JSON: used as it is
	}
	return view(plain)
}

// view returns b as a string without copying.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// number returns the decimal number of v. A text counts if it consists of a number and white
// space around it.
func (v Value) number() (text string, ok bool) {
	if v.Kind == Number {
		return v.Text, true
	}
	if v.Kind != String {
		return "", false
	}
	s, plus := strings.CutPrefix(strings.TrimSpace(v.Text), "+")
	if plus && strings.HasPrefix(s, "-") {
		return "", false
	}
	return s, s != "" && decimalLength(s) == len(s)
}

// truthy reports whether v counts as true.
func (v Value) truthy() bool {
	switch v.Kind {
	case Null:
		return false
	case Bool:
		return v.Bool
	case Number:
		d := newDecimal(v.Text)
		return d.sign() != 0
	case String:
		return v.Text != ""
	}
	return true
}

// numbers returns both values as numbers if at least one is a number and the other is a number
// or a numeric text.
func numbers(a, b Value) (x, y string, ok bool) {
	if a.Kind != Number && b.Kind != Number {
		return "", "", false
	}
	x, okA := a.number()
	y, okB := b.number()
	return x, y, okA && okB
}

// Equal reports whether v == w in the language.
func (v Value) Equal(w Value) bool {
	if x, y, ok := numbers(v, w); ok {
		return compareDecimals(x, y) == 0
	}
	if v.Kind != w.Kind {
		return false
	}
	switch v.Kind {
	case Bool:
		return v.Bool == w.Bool
	case String:
		return v.Text == w.Text
	case Array, Object:
		return equalStructures(v.Raw, w.Raw)
	}
	return v.Kind == Null
}

// compare orders two values as numbers if both are numbers or numeric texts, and otherwise two
// texts as texts. Other pairs have no order.
func (v Value) compare(w Value) (int, bool) {
	x, okX := v.number()
	y, okY := w.number()
	if okX && okY {
		return compareDecimals(x, y), true
	}
	if v.Kind == String && w.Kind == String {
		return strings.Compare(v.Text, w.Text), true
	}
	return 0, false
}
