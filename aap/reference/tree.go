package reference

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Undefined is an absent value, as opposed to a null.
type Undefined struct{}

// Object is a JSON object. Its members are in JavaScript's order: names that are array indexes
// first, by number, then the others in the order of the text.
type Object struct {
	names   []string
	members map[string]any
}

// Decode reads one JSON text as JavaScript's JSON.parse does: the last of several equal names
// is used, and a number too great for a double is infinite. It returns nil, bool, float64,
// string, []any or *Object.
func Decode(text []byte) (any, error) {
	in := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	v, err := decode(in)
	if err != nil {
		return nil, fmt.Errorf("decode JSON: %w", err)
	}
	if _, err := in.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("decode JSON: more than one value")
	}
	return v, nil
}

func decode(in *jsontext.Decoder) (any, error) {
	token, err := in.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case 't', 'f':
		return token.Bool(), nil
	case '"':
		return token.String(), nil
	case '0':
		number, err := strconv.ParseFloat(token.String(), 64)
		if errors.Is(err, strconv.ErrRange) {
			err = nil // infinite or zero, as in JavaScript
		}
		return number, err
	case '[':
		list := []any{}
		for in.PeekKind() != ']' {
			element, err := decode(in)
			if err != nil {
				return nil, err
			}
			list = append(list, element)
		}
		_, err := in.ReadToken()
		return list, err
	case '{':
		o := &Object{members: map[string]any{}}
		for in.PeekKind() != '}' {
			name, err := in.ReadToken()
			if err != nil {
				return nil, err
			}
			key := name.String() // before the next read, which invalidates the token
			member, err := decode(in)
			if err != nil {
				return nil, err
			}
			o.set(key, member)
		}
		slices.SortStableFunc(o.names, compareNames)
		_, err := in.ReadToken()
		return o, err
	}
	return nil, nil
}

func (o *Object) set(name string, member any) {
	if _, twice := o.members[name]; !twice {
		o.names = append(o.names, name)
	}
	o.members[name] = member
}

// compareNames orders array indexes before all other names.
func compareNames(a, b string) int {
	i, indexA := arrayIndex(a)
	j, indexB := arrayIndex(b)
	switch {
	case indexA && indexB:
		return i - j
	case indexA:
		return -1
	case indexB:
		return 1
	}
	return 0
}

// maxArrayIndex is the greatest array index of JavaScript.
const maxArrayIndex = 1<<32 - 2

// arrayIndex parses a name that is an array index in its shortest form.
func arrayIndex(name string) (int, bool) {
	i, err := strconv.ParseUint(name, 10, 32)
	return int(i), err == nil && i <= maxArrayIndex && strconv.FormatUint(i, 10) == name
}

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
		return appendList(b, v)
	case []any:
		return appendList(b, v)
	case *Object:
		b = append(b, '{')
		for i, name := range v.names {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendJSON(b, name), ':')
			b = appendJSON(b, v.members[name])
		}
		return append(b, '}')
	}
	return append(b, "null"...)
}

func appendList[T any](b []byte, list []T) []byte {
	b = append(b, '[')
	for i, element := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendJSON(b, element)
	}
	return append(b, ']')
}

// MarshalJSON encodes an object as stringify does.
func (o *Object) MarshalJSON() ([]byte, error) { return appendJSON(nil, o), nil }

// Echo is a value of the request that the result repeats.
type Echo struct{ v any }

// MarshalJSON encodes the value as JavaScript does.
func (e Echo) MarshalJSON() ([]byte, error) { return appendJSON(nil, e.v), nil }

// IsZero reports whether there is no value: JavaScript omits such members.
func (e Echo) IsZero() bool {
	_, undefined := e.v.(Undefined)
	return undefined
}

// echoOrEmpty returns n, or the empty text where n is null or undefined.
func (n value) echoOrEmpty() Echo { return Echo{n.or(value{v: ""}).v} }
