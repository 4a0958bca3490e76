package reference

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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
		return decodeList(in)
	case '{':
		return decodeObject(in)
	}
	return nil, nil
}

func decodeList(in *jsontext.Decoder) (any, error) {
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
}

func decodeObject(in *jsontext.Decoder) (any, error) {
	o := &Object{members: map[string]any{}}
	for in.PeekKind() != '}' {
		name, err := in.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String()
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
