package ledger

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/schema/canonical"
)

// Limits of an entry's data: its size, and with it a line's; and how deep objects and
// arrays may be nested, which verifiers in other languages bound lower than ours.
const (
	MaxDataBytes = 1 << 20
	MaxDepth     = 64
)

// Canonical returns the canonical form (RFC 8785) of an entry's data, a JSON
// object. It refuses what has none, or more than one reading: duplicate keys,
// invalid UTF-8, and integers that the form would change; and what is beyond the
// limits.
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

// checkTexts refuses a number whose text is not the one that the canonical form has
// for it: 1.0 and 1 have one hash, so that either could be put in the other's place.
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

// tooDeep tells whether a canonical form is nested deeper than MaxDepth.
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
