package schema

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/gowebpki/jcs"
)

// Canonical returns the form of a JSON value that is signed and hashed: the JSON
// Canonicalization Scheme (RFC 8785). Two values with the same canonical form mean the same to
// a reader of 64-bit floats and to a reader of integers. Therefore it refuses integers that the
// form would have to round: 9007199254740993 and 9007199254740992 have the same form, so a
// signature could not distinguish them. It also refuses anything that is not strict JSON. The
// error says why the value has no form; if a number is the reason, it includes the JSON pointer.
func Canonical(value []byte) ([]byte, error) {
	if !jsontext.Value(value).IsValid() {
		return nil, errors.New("not strict JSON: malformed, not UTF-8, or with a name twice in one object")
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(value))
	for first := true; first || dec.StackDepth() > 0; first = false {
		token, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		if token.Kind() == '0' && !exact(token.String()) {
			return nil, fmt.Errorf("%s: a 64-bit float cannot hold this number: write it as a string", dec.StackPointer())
		}
	}
	return jcs.Transform(value)
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
	significant := func(number string) string { // without sign, point, exponent, and leading or trailing zeros
		mantissa, _, _ := strings.Cut(strings.TrimPrefix(number, "-"), "e")
		return strings.Trim(strings.Replace(mantissa, ".", "", 1), "0")
	}
	return significant(number) == significant(strconv.FormatFloat(f, 'e', -1, 64))
}
