package otel

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/plumbline/plumbline/schema"
)

// form is the type of a member.
type form uint8

const (
	text   form = iota
	texts       // an array of texts
	number      // finite
	whole       // a whole number of at least 0
	truth
	object // or its JSON as text, because most libraries cannot make an attribute of an object
	array  // of objects, or its JSON as text
	value  // anything; a text that is JSON is that JSON
)

func (f form) String() string {
	return [...]string{"a text", "an array of texts", "a number", "a whole number of at least 0", "true or false",
		"an object, or a text that is the JSON of one", "an array of objects, or a text that is the JSON of one", "any value"}[f]
}

// strict returns a member from its own attribute. The error says what the attribute must be.
func (f form) strict(v pcommon.Value) (jsontext.Value, error) {
	if v.Type() == pcommon.ValueTypeStr && !utf8.ValidString(v.Str()) {
		return nil, errors.New("it is not UTF-8")
	}
	if raw := f.read(v); raw != nil {
		return raw, nil
	}
	return nil, fmt.Errorf("want %s", f)
}

// lenient returns a member from an attribute of another convention, or nil if it has another type.
func (f form) lenient(v pcommon.Value) jsontext.Value {
	if f == text && v.Type() == pcommon.ValueTypeStr && v.Str() == "" {
		return nil
	}
	return f.read(v)
}

func (f form) read(v pcommon.Value) jsontext.Value {
	kind := v.Type()
	switch f {
	case text:
		if kind == pcommon.ValueTypeStr {
			return quote(v.Str())
		}
	case texts:
		if kind == pcommon.ValueTypeSlice && all(v.Slice(), pcommon.ValueTypeStr) {
			return encode(v)
		}
	case number:
		if kind == pcommon.ValueTypeInt || kind == pcommon.ValueTypeDouble && !math.IsNaN(v.Double()) && !math.IsInf(v.Double(), 0) {
			return encode(v)
		}
	case whole:
		if kind == pcommon.ValueTypeInt && v.Int() >= 0 {
			return strconv.AppendInt(nil, v.Int(), 10)
		}
	case truth:
		if kind == pcommon.ValueTypeBool {
			return encode(v)
		}
	case object:
		if kind == pcommon.ValueTypeMap {
			return encode(v)
		}
		return parsed(v, '{')
	case array:
		if kind == pcommon.ValueTypeSlice && all(v.Slice(), pcommon.ValueTypeMap) {
			return encode(v)
		}
		return parsed(v, '[')
	case value:
		if raw := parsed(v, 0); raw != nil {
			return raw
		}
		return encode(v)
	}
	return nil
}

func all(values pcommon.Slice, kind pcommon.ValueType) bool {
	for _, v := range values.All() {
		if v.Type() != kind {
			return false
		}
	}
	return true
}

// maxDepth is how many levels of objects and arrays the JSON of an attribute may have. A trace has some
// levels more.
const maxDepth = 32

// parsed returns the JSON that a text is, if it is strict JSON of the given kind; kind 0 is an object or
// an array. A text such as "7" stays a text, because it may have been one.
func parsed(v pcommon.Value, kind jsontext.Kind) jsontext.Value {
	if v.Type() != pcommon.ValueTypeStr {
		return nil
	}
	raw := jsontext.Value(strings.TrimSpace(v.Str()))
	found := raw.Kind()
	depth, _ := schema.Nesting(raw)
	if found != kind && (kind != 0 || found != '{' && found != '[') || depth > maxDepth || !raw.IsValid() {
		return nil
	}
	if raw.Compact() != nil { // a record has no line breaks
		return nil
	}
	return raw
}

// maxExact is the largest whole number that every reader of JSON represents exactly. A larger one is
// written as text.
const maxExact = 1 << 53

// encode returns the JSON of an attribute's value. Bytes are base64, as in OTLP's own JSON, and numbers
// that JSON does not have are texts.
func encode(v pcommon.Value) jsontext.Value {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return quote(v.Str())
	case pcommon.ValueTypeBool:
		return strconv.AppendBool(nil, v.Bool())
	case pcommon.ValueTypeInt:
		if n := v.Int(); n < -maxExact || n > maxExact {
			return quote(strconv.FormatInt(n, 10))
		}
		return strconv.AppendInt(nil, v.Int(), 10)
	case pcommon.ValueTypeDouble:
		f := v.Double()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return quote(strconv.FormatFloat(f, 'g', -1, 64))
		}
		return jsontext.Value(jsontext.Float(f).String())
	case pcommon.ValueTypeBytes:
		return quote(base64.StdEncoding.EncodeToString(v.Bytes().AsRaw()))
	case pcommon.ValueTypeSlice:
		raw := jsontext.Value("[")
		for i, item := range v.Slice().All() {
			if i > 0 {
				raw = append(raw, ',')
			}
			raw = append(raw, encode(item)...)
		}
		return append(raw, ']')
	case pcommon.ValueTypeMap:
		return encodeMap(v.Map())
	}
	return jsontext.Value("null")
}

// encodeMap writes the members in the order of their names. Of members with one name it writes the first.
func encodeMap(m pcommon.Map) jsontext.Value {
	names := make([]string, 0, m.Len())
	for name := range m.All() {
		names = append(names, name)
	}
	slices.Sort(names)
	out := document{}
	for _, name := range slices.Compact(names) {
		v, _ := m.Get(name)
		out.setName("", name, encode(v))
	}
	return out.end()
}

// quote returns the JSON of a text. What is not UTF-8 in it becomes the replacement character.
func quote(s string) jsontext.Value {
	raw, err := jsontext.AppendQuote(nil, strings.ToValidUTF8(s, "\uFFFD"))
	if err != nil { // the text is valid UTF-8
		panic(err)
	}
	return raw
}

func list(items []string) jsontext.Value {
	raw := jsontext.Value("[")
	for i, item := range items {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = append(raw, quote(item)...)
	}
	return append(raw, ']')
}

// omitted describes a value that is too large for a trace.
func omitted(raw []byte) jsontext.Value {
	return fmt.Appendf(nil, `{"omitted_bytes":%d,"sha256":"%s"}`, len(raw), schema.DigestOf(raw))
}
