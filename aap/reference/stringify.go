package reference

import (
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Number is a float64 that is encoded as in JavaScript: a value that is not finite is null, and
// there is no negative zero.
type Number float64

// MarshalJSON never returns an error.
func (n Number) MarshalJSON() ([]byte, error) { return appendJSON(nil, float64(n)), nil }

// stringify is JavaScript's JSON.stringify.
func stringify(v any) string { return string(appendJSON(nil, v)) }

func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		quoted, err := jsontext.AppendQuote(b, v)
		if err != nil { // invalid UTF-8, which decoding replaced before
			return append(b, `""`...)
		}
		return quoted
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return append(b, "null"...)
		}
		return append(b, formatNumber(v)...)
	case bool:
		return strconv.AppendBool(b, v)
	case []string:
		return appendList(b, len(v), func(b []byte, i int) []byte { return appendJSON(b, v[i]) })
	case []any:
		return appendList(b, len(v), func(b []byte, i int) []byte { return appendJSON(b, v[i]) })
	case *Object:
		return appendObject(b, v)
	}
	return append(b, "null"...)
}

func appendList(b []byte, n int, element func([]byte, int) []byte) []byte {
	b = append(b, '[')
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = element(b, i)
	}
	return append(b, ']')
}

func appendObject(b []byte, o *Object) []byte {
	b = append(b, '{')
	for i, name := range o.names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendJSON(b, name), ':')
		b = appendJSON(b, o.members[name])
	}
	return append(b, '}')
}

// MarshalJSON encodes an object as stringify does.
func (o *Object) MarshalJSON() ([]byte, error) { return appendJSON(nil, o), nil }
