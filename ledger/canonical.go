package ledger

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/schema/canonical"
)

// Limits of an entry's data. MaxDataBytes bounds the data and with it a line; MaxDepth bounds
// the nesting of objects and arrays, because verifiers in other languages allow less than Go.
const (
	MaxDataBytes = 1 << 20
	MaxDepth     = 64
)

// Canonical returns the canonical form (RFC 8785) of an entry's data, a JSON object. It refuses
// data with no canonical form or with several readings: duplicate keys, invalid UTF-8, and
// integers that the form would change. It also refuses data beyond the limits.
func Canonical(data []byte) ([]byte, error) {
	if jsontext.Value(data).Kind() != '{' {
		return nil, errors.New("data: not a JSON object")
	}
	form, err := canonical.JSON(data)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	if len(form) > MaxDataBytes {
		return nil, fmt.Errorf("data: %d bytes, an entry may have %d", len(form), MaxDataBytes)
	}
	if tooDeep(form) {
		return nil, fmt.Errorf("data: nested deeper than %d", MaxDepth)
	}
	return form, nil
}

// checkTexts refuses a number that is not written as in the canonical form: 1.0 and 1 have the
// same hash, so one could replace the other.
func checkTexts(data []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	for first := true; first || dec.StackDepth() > 0; first = false {
		token, err := dec.ReadToken()
		if err != nil {
			return fmt.Errorf("data: %w", err)
		}
		if token.Kind() != '0' {
			continue
		}
		text := token.String()
		form, err := canonical.JSON([]byte(text))
		if err != nil {
			return fmt.Errorf("data: %s: %w", dec.StackPointer(), err)
		}
		if string(form) != text {
			return fmt.Errorf("data: %s: the number %s is written %s in the canonical form, which is what the hash covers", dec.StackPointer(), clip(text), form)
		}
	}
	return nil
}

// tooDeep reports whether a canonical form is nested deeper than MaxDepth.
func tooDeep(form []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(form); i++ {
		switch c := form[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}
