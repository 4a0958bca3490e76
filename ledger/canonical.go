package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/gowebpki/jcs"
)

// MaxDataBytes bounds an entry's data, and with it a line.
const MaxDataBytes = 1 << 20

// maxExact is the largest integer that no other one is read as (RFC 7493,
// section 2.2). A larger one must stand as the canonical form writes it.
const maxExact = 1<<53 - 1

// Canonical returns the canonical form (RFC 8785) of an entry's data. It refuses
// what has none, or more than one reading: what is no JSON object, duplicate
// keys, invalid UTF-8, and integers that a float64 cannot hold.
func Canonical(data []byte) ([]byte, error) {
	if len(data) > MaxDataBytes {
		return nil, fmt.Errorf("data: %d bytes, an entry may have %d", len(data), MaxDataBytes)
	}
	if jsontext.Value(data).Kind() != '{' {
		return nil, errors.New("data: not a JSON object")
	}
	if err := checkNumbers(data); err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	canonical, err := jcs.Transform(data)
	if err != nil {
		return nil, fmt.Errorf("data: no canonical form (RFC 8785): %w", err)
	}
	return canonical, nil
}

// checkNumbers reads data strictly and refuses numbers that change in the
// canonical form, which the hash covers.
func checkNumbers(data []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	if err := readNumbers(dec); err != nil {
		return err
	}
	return atEnd(dec)
}

func readNumbers(dec *jsontext.Decoder) error {
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		if token.Kind() == '0' {
			if err := exact(token.String()); err != nil {
				return fmt.Errorf("%s: %w", dec.StackPointer(), err)
			}
		}
		if dec.StackDepth() == 0 {
			return nil
		}
	}
}

func exact(number string) error {
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsInf(value, 0) {
		return fmt.Errorf("%s is beyond a float64", clip(number))
	}
	if strings.ContainsAny(number, ".eE") || math.Abs(value) <= maxExact {
		return nil
	}
	if canonical, err := jcs.NumberToJSON(value); err != nil || canonical != number {
		return fmt.Errorf("%s is beyond 2^53 - 1, and would change in the canonical form: write it as text", clip(number))
	}
	return nil
}
