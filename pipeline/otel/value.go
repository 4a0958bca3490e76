package otel

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
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

// errLong is the error of a value that no trace can have.
var errLong = fmt.Errorf("it has more than %d bytes, more than a trace may have", schema.MaxTraceBytes)

// tooLong reports whether a value is a text that is longer than a trace may be.
func tooLong(v pcommon.Value) bool {
	return v.Type() == pcommon.ValueTypeStr && len(v.Str()) > schema.MaxTraceBytes
}

// strict returns a member from its own attribute. The error says what the attribute must be.
func (f form) strict(v pcommon.Value) (jsontext.Value, error) {
	if tooLong(v) {
		return nil, errLong
	}
	if v.Type() == pcommon.ValueTypeStr && !utf8.ValidString(v.Str()) {
		return nil, errors.New("it is not UTF-8")
	}
	if raw := f.read(v, schema.MaxTraceBytes); raw != nil {
		return raw, nil
	}
	return nil, fmt.Errorf("want %s", f)
}

// lenient returns a member from an attribute of another convention, or nil if it has another type. Of
// content that is too large for a trace it returns the size and the SHA-256.
func (f form) lenient(v pcommon.Value) jsontext.Value {
	if f == text && v.Type() == pcommon.ValueTypeStr && v.Str() == "" {
		return nil
	}
	return f.read(v, maxContent)
}

// read returns a member, or nil if the value has another type. most is how many bytes it may have before
// its size and SHA-256 take its place.
func (f form) read(v pcommon.Value, most int) jsontext.Value {
	kind := v.Type()
	switch f {
	case text:
		if kind == pcommon.ValueTypeStr {
			return quote(v.Str())
		}
	case texts:
		if kind == pcommon.ValueTypeSlice && all(v.Slice(), pcommon.ValueTypeStr) {
			return encode(v, most)
		}
	case number:
		if kind == pcommon.ValueTypeInt || kind == pcommon.ValueTypeDouble && !math.IsNaN(v.Double()) && !math.IsInf(v.Double(), 0) {
			return encode(v, most)
		}
	case whole:
		if kind == pcommon.ValueTypeInt && v.Int() >= 0 {
			return strconv.AppendInt(nil, v.Int(), 10)
		}
	case truth:
		if kind == pcommon.ValueTypeBool {
			return encode(v, most)
		}
	case object:
		if kind == pcommon.ValueTypeMap {
			return encode(v, most)
		}
		return fitting(parsed(v, '{'), most)
	case array:
		if kind == pcommon.ValueTypeSlice && all(v.Slice(), pcommon.ValueTypeMap) {
			return encode(v, most)
		}
		return fitting(parsed(v, '['), most)
	case value:
		if raw := parsed(v, 0); raw != nil {
			return fitting(raw, most)
		}
		return encode(v, most)
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

// fitting returns JSON, or its size and SHA-256 if it has more than so many bytes.
func fitting(raw jsontext.Value, most int) jsontext.Value {
	if len(raw) > most {
		return omitted(len(raw), sha256.Sum256(raw))
	}
	return raw
}

// omitted describes a value that is too large for a trace.
func omitted(size int, digest [sha256.Size]byte) jsontext.Value {
	return fmt.Appendf(nil, `{"omitted_bytes":%d,"sha256":"%x"}`, size, digest)
}
