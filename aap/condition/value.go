package condition

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"strconv"
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

// equalStructures reports whether two arrays or objects have the same content. White space, the
// order of an object's members, and the notation of texts and numbers make no difference.
func equalStructures(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, errX := ordered(a)
	y, errY := ordered(b)
	if errX != nil || errY != nil {
		return false
	}
	for {
		v, errV := x.ReadToken()
		w, errW := y.ReadToken()
		if errV != nil || errW != nil {
			return errors.Is(errV, io.EOF) && errors.Is(errW, io.EOF)
		}
		if v.Kind() != w.Kind() {
			return false
		}
		switch v.Kind() {
		case '"':
			if v.String() != w.String() {
				return false
			}
		case '0':
			if compareDecimals(v.String(), w.String()) != 0 {
				return false
			}
		}
	}
}

// ordered returns a decoder of raw with the members of its objects sorted.
func ordered(raw []byte) (*jsontext.Decoder, error) {
	text, err := jsontext.AppendFormat(nil, raw, jsontext.ReorderRawObjects(true), jsontext.AllowDuplicateNames(true))
	if err != nil {
		return nil, err
	}
	return jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true)), nil
}

// decimal is an exact decimal number: 0.DIGITS times ten to the power of point. DIGITS are the
// digits of the whole part and the fraction without leading zeros; zero has none.
type decimal struct {
	negative        bool
	whole, fraction string
	point           int64
}

// farthest bounds the exponents that are compared exactly. No text that fits into a trace has
// so many digits.
const farthest = 1 << 62

// newDecimal reads a number as decimalLength accepts it.
func newDecimal(text string) decimal {
	var d decimal
	text, d.negative = strings.CutPrefix(text, "-")
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		d.point, _ = strconv.ParseInt(text[at+1:], 10, 64) // beyond 64 bits: the nearest 64-bit value
		d.point = min(max(d.point, -farthest), farthest)
		text = text[:at]
	}
	d.whole, d.fraction, _ = strings.Cut(text, ".")
	d.whole = strings.TrimLeft(d.whole, "0")
	d.point += int64(len(d.whole))
	if d.whole == "" {
		significant := strings.TrimLeft(d.fraction, "0")
		d.point -= int64(len(d.fraction) - len(significant))
		d.fraction = significant
	}
	return d
}

func (d *decimal) sign() int {
	switch {
	case d.whole == "" && d.fraction == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// digit returns digit i after the point of 0.DIGITS.
func (d *decimal) digit(i int) byte {
	if i < len(d.whole) {
		return d.whole[i]
	}
	if i -= len(d.whole); i < len(d.fraction) {
		return d.fraction[i]
	}
	return '0'
}

// compareDecimals orders two decimal numbers exactly: amounts in wei, for example, have more
// digits than a 64-bit float.
func compareDecimals(a, b string) int {
	x, y := newDecimal(a), newDecimal(b)
	sign := x.sign()
	if order := cmp.Compare(sign, y.sign()); order != 0 || sign == 0 {
		return order
	}
	if order := cmp.Compare(x.point, y.point); order != 0 {
		return order * sign
	}
	for i := range max(len(x.whole)+len(x.fraction), len(y.whole)+len(y.fraction)) {
		if order := cmp.Compare(x.digit(i), y.digit(i)); order != 0 {
			return order * sign
		}
	}
	return 0
}

// Cursor reads parts of raw JSON that is known to be valid. A reused Cursor does not allocate.
// It is not safe for concurrent use; the zero value is ready.
type Cursor struct {
	source bytes.Buffer
	dec    *jsontext.Decoder
	raw    []byte
}

func (c *Cursor) reset(raw []byte) {
	c.raw, c.source = raw, *bytes.NewBuffer(raw)
	if c.dec == nil {
		c.dec = jsontext.NewDecoder(&c.source, jsontext.AllowDuplicateNames(true))
		return
	}
	c.dec.Reset(&c.source, jsontext.AllowDuplicateNames(true))
}

// Find returns the value at path inside the object raw, and whether there is one. Array
// elements have no names, so no path leads into an array.
func (c *Cursor) Find(raw []byte, path []string) ([]byte, bool) {
	c.reset(raw)
	for _, name := range path {
		if !c.enter('{') || !c.seek(name) {
			return nil, false
		}
	}
	return c.value()
}

// Each calls f with the elements of the array raw until f returns false.
func (c *Cursor) Each(raw []byte, f func(element []byte) bool) {
	c.reset(raw)
	if !c.enter('[') {
		return
	}
	for c.dec.PeekKind() != ']' {
		element, ok := c.value()
		if !ok || !f(element) {
			return
		}
	}
}

func (c *Cursor) enter(kind jsontext.Kind) bool {
	if c.dec.PeekKind() != kind {
		return false
	}
	_, err := c.dec.ReadToken()
	return err == nil
}

// seek reads members up to the value of the member called name.
func (c *Cursor) seek(name string) bool {
	for c.dec.PeekKind() == '"' {
		found, ok := c.value()
		if !ok {
			return false
		}
		if unquote(found) == name {
			return true
		}
		if err := c.dec.SkipValue(); err != nil {
			return false
		}
	}
	return false
}

// value reads the next value; it aliases raw.
func (c *Cursor) value() ([]byte, bool) {
	v, err := c.dec.ReadValue()
	if err != nil {
		return nil, false
	}
	end := int(c.dec.InputOffset())
	return c.raw[end-len(v) : end], true
}
