package signature

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/gowebpki/jcs"

	"github.com/plumbline/plumbline/schema/splice"
)

// Payload returns the bytes that are signed: the JCS form of a JSON object
// without its top-level member "signature". The error is ErrUnsignable with the
// reason: not strict JSON, not an object, or a number that a 64-bit float does
// not hold.
func Payload(object []byte) ([]byte, error) {
	bare, _, err := splice.Cut(object, Member)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsignable, err)
	}
	if err := checkNumbers(bare); err != nil {
		return nil, err
	}
	payload, err := jcs.Transform(bare)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsignable, err)
	}
	return payload, nil
}

// checkNumbers refuses integers that JCS would round: 9007199254740993 and
// 9007199254740992 have one canonical form, so that a signature could not tell
// them apart, while a reader of integers can.
func checkNumbers(object []byte) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(object))
	for dec.StackDepth() > 0 || dec.InputOffset() == 0 {
		token, err := dec.ReadToken()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnsignable, err)
		}
		if token.Kind() != '0' || exact(token.String()) {
			continue
		}
		return fmt.Errorf("%w: %s: a number that a 64-bit float does not hold: write it as a string", ErrUnsignable, dec.StackPointer())
	}
	return nil
}

// exact tells whether number, if it is written as an integer, has the digits of
// the float that it stands for. The exponents need no look: the same digits with
// another exponent are another float.
func exact(number string) bool {
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return false
	}
	if strings.ContainsAny(number, ".eE") {
		return true // everybody reads these as floats
	}
	return digits(number) == digits(strconv.FormatFloat(f, 'e', -1, 64))
}

// digits returns the significant digits of a number: without sign, point,
// exponent and the zeros around them.
func digits(number string) string {
	mantissa, _, _ := strings.Cut(strings.TrimPrefix(number, "-"), "e")
	return strings.Trim(strings.Replace(mantissa, ".", "", 1), "0")
}
