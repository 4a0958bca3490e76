package ledger

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/schema/canonical"
)

// MaxDataBytes bounds an entry's data, and with it a line.
const MaxDataBytes = 1 << 20

// Canonical returns the canonical form (RFC 8785) of an entry's data, a JSON
// object. It refuses what has none, or more than one reading: duplicate keys,
// invalid UTF-8, and integers that the form would change.
func Canonical(data []byte) ([]byte, error) {
	if len(data) > MaxDataBytes {
		return nil, fmt.Errorf("data: %d bytes, an entry may have %d", len(data), MaxDataBytes)
	}
	if jsontext.Value(data).Kind() != '{' {
		return nil, errors.New("data: not a JSON object")
	}
	form, err := canonical.JSON(data)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	return form, nil
}
