// Package canonical writes JSON in the form that is signed and hashed: the JSON
// Canonicalization Scheme (RFC 8785).
//
// Invariant: two values with the same canonical form mean the same to a reader of 64-bit floats
// and to a reader of integers. Therefore the package refuses integers that the form would have
// to round. It also refuses anything that is not strict JSON.
package canonical

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/gowebpki/jcs"
)

// JSON returns the canonical form of any JSON value. The error says why the value has none; if
// a number is the reason, it includes the JSON pointer.
func JSON(value []byte) ([]byte, error) {
	if !jsontext.Value(value).IsValid() {
		return nil, errors.New("not strict JSON: malformed, not UTF-8, or with a name twice in one object")
	}
	if err := checkNumbers(value); err != nil {
		return nil, err
	}
	return jcs.Transform(value)
}

// checkNumbers refuses integers that JCS would round: 9007199254740993 and 9007199254740992
// have the same canonical form, so a signature could not distinguish them, while a reader of
// integers can.
func checkNumbers(value []byte) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(value))
	for first := true; first || dec.StackDepth() > 0; first = false {
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		if token.Kind() == '0' && !exact(token.String()) {
			return fmt.Errorf("%s: a number that a 64-bit float does not hold: write it as a string", dec.StackPointer())
		}
	}
	return nil
}

// exact reports whether number, if it is written as an integer, has the same digits as the
// float it is read as. Exponents need no comparison: the same digits with another exponent are
// another float.
func exact(number string) bool {
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return false
	}
	if strings.ContainsAny(number, ".eE") {
		return true // every reader reads these as floats
	}
	return digits(number) == digits(strconv.FormatFloat(f, 'e', -1, 64))
}

// digits returns the significant digits of a number, without sign, point, exponent, and leading
// or trailing zeros.
func digits(number string) string {
	mantissa, _, _ := strings.Cut(strings.TrimPrefix(number, "-"), "e")
	return strings.Trim(strings.Replace(mantissa, ".", "", 1), "0")
}
