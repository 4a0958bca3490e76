package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrNoObject is the error of CutMember, PutMember and DecodeMembers for a text that is not one
// strict JSON object. White space around the object is allowed.
var ErrNoObject = errors.New("not a JSON object")

// DecodeMembers reads one object whose members may have any names. Names and values alias raw.
func DecodeMembers(raw []byte) (all Members, err error) {
	found, err := locate(trimSpace(raw))
	for i := range found {
		all = append(all, found[i].Member)
	}
	return all, err
}

// located is a member of an object and the place where it lies, including the comma before it.
type located struct {
	Member
	place
}

// locate returns the members of an object.
func locate(object []byte) (found []located, err error) {
	r := reader{scanning: true}
	if found = r.located(object); errors.Is(r.err, errDoubt) {
		r.scanning = false
		found = r.located(object)
	}
	if err := r.refusal(ReasonInvalidJSON); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoObject, err)
	}
	return found, nil
}

// located reads the members of an object. They are not all of them if there is a fault.
func (r *reader) located(object []byte) (found []located) {
	r.reset(object)
	if r.enter('{', "an object") {
		for r.more() {
			m := located{place: place{from: r.offset()}}
			m.Name, m.Value = r.name(), r.value()
			m.to = r.offset()
			found = append(found, m)
		}
	}
	r.end()
	return found
}

// CutMember returns the object without its member called name, and the raw value of that
// member, nil where there is none. Names are compared after unescaping. All other bytes stay as
// they are, and both results are new slices. CutMember removes exactly the bytes that PutMember
// added.
func CutMember(object []byte, name string) (rest, value []byte, err error) {
	object = trimSpace(object)
	found, err := locate(object)
	if err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(found, func(m located) bool { return m.Name == name })
	if i < 0 {
		return bytes.Clone(object), nil, nil
	}
	start, end := found[i].from, found[i].to
	if object[start-1] == '{' { // the first member: remove the comma after it
		if after := bytes.TrimLeft(object[end:], jsonSpace); after[0] == ',' {
			end = len(object) - len(after) + 1
		}
	}
	return slices.Concat(object[:start], object[end:]), bytes.Clone(found[i].Value), nil
}

// PutMember returns the object with a last member of that name and raw value. It replaces an
// existing member of that name.
func PutMember(object []byte, name string, value []byte) ([]byte, error) {
	rest, _, err := CutMember(object, name)
	if err != nil {
		return nil, err
	}
	quoted, err := json.Marshal(name)
	if err != nil {
		return nil, fmt.Errorf("quote a name: %w", err)
	}
	inner := bytes.TrimRight(rest[:len(rest)-1], jsonSpace)
	tail, comma := rest[len(inner):], []byte{','}
	if len(inner) == 1 {
		comma = nil
	}
	return slices.Concat(inner, comma, quoted, []byte{':'}, value, tail), nil
}

// jsonSpace is the white space of JSON.
const jsonSpace = " \t\r\n"

func trimSpace(raw []byte) []byte { return bytes.Trim(raw, jsonSpace) }

// Canonical returns the form of a JSON value that is signed and hashed: the JSON
// Canonicalization Scheme (RFC 8785). Two values with the same canonical form mean the same to
// a reader of 64-bit floats and to a reader of integers. Therefore it refuses integers that the
// form would have to round: 9007199254740993 and 9007199254740992 have the same form, so a
// signature could not distinguish them. It also refuses anything that is not strict JSON. The
// error says why the value has no form; if a number is the reason, it includes the JSON pointer.
func Canonical(value []byte) ([]byte, error) {
	form := jsontext.Value(bytes.Clone(value))
	if form.Canonicalize() != nil {
		return nil, errors.New("not strict JSON: malformed, not UTF-8, or with a name twice in one object")
	}
	if allExact(value) {
		return form, nil
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(value), jsontext.AllowDuplicateNames(true)) // there are none: Canonicalize refuses them
	for first := true; first || dec.StackDepth() > 0; first = false {
		token, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		if token.Kind() == '0' && !exact(token.String()) {
			return nil, fmt.Errorf("%s: a 64-bit float cannot hold this number: write it as a string", dec.StackPointer())
		}
	}
	return form, nil
}

// allExact reports whether every number of a strict JSON value is exact. It reports false where it does not know.
func allExact(value []byte) bool {
	var s scanner
	s.reset(value)
	return s.value() != nil && !s.long
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
