// Package splice removes a top-level member from a JSON object or adds one, and keeps every
// other byte of the object in place.
//
// It knows no meaning of any member, reads strict JSON (no duplicate names, valid UTF-8) and
// does no I/O.
//
// Invariant: Cut removes exactly the bytes that Put added.
package splice

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrNoObject is the error for a text that is not one JSON object. White space around the
// object is allowed.
var ErrNoObject = errors.New("not a JSON object")

// Cut returns the object without the member called name, and the raw value of that member, nil
// where there is none. Names are compared after unescaping. Both results are new slices.
func Cut(object []byte, name string) (rest, value []byte, err error) {
	at, err := find(object, name)
	if err != nil {
		return nil, nil, err
	}
	if !at.found {
		return append([]byte(nil), at.object...), nil, nil
	}
	rest = append(make([]byte, 0, len(at.object)), at.object[:at.from]...)
	return append(rest, at.object[at.to:]...), append([]byte(nil), at.value...), nil
}

// Put returns the object with a last member of that name and raw value; it replaces an existing
// member of that name.
func Put(object []byte, name string, value []byte) ([]byte, error) {
	rest, _, err := Cut(object, name)
	if err != nil {
		return nil, err
	}
	quoted, err := json.Marshal(name)
	if err != nil {
		return nil, fmt.Errorf("quote a name: %w", err)
	}
	inner := bytes.TrimRight(rest[:len(rest)-1], " \t\r\n")
	tail := rest[len(inner):]
	out := append(make([]byte, 0, len(rest)+len(quoted)+len(value)+2), inner...)
	if len(inner) > 1 {
		out = append(out, ',')
	}
	out = append(append(append(out, quoted...), ':'), value...)
	return append(out, tail...), nil
}

// place is the place of a member in an object.
type place struct {
	object   []byte // without white space around it
	found    bool
	from, to int // the member and the comma to remove with it
	value    []byte
}

// find reads the whole object, so faults after the member are errors too.
func find(object []byte, name string) (place, error) {
	at := place{object: bytes.Trim(object, " \t\r\n")}
	dec := jsontext.NewDecoder(bytes.NewBuffer(at.object))
	if dec.PeekKind() != '{' {
		return at, ErrNoObject
	}
	if _, err := dec.ReadToken(); err != nil {
		return at, fmt.Errorf("%w: %w", ErrNoObject, err)
	}
	for dec.PeekKind() != '}' {
		if err := at.member(dec, name); err != nil {
			return at, fmt.Errorf("%w: %w", ErrNoObject, err)
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return at, fmt.Errorf("%w: %w", ErrNoObject, err)
	}
	if int(dec.InputOffset()) != len(at.object) {
		return at, fmt.Errorf("%w: there is text after it", ErrNoObject)
	}
	return at, nil
}

// member reads the next member.
func (p *place) member(dec *jsontext.Decoder, name string) error {
	before := int(dec.InputOffset())
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	wanted := token.String() == name
	value, err := dec.ReadValue()
	if err != nil || !wanted {
		return err
	}
	p.found, p.from, p.to = true, before, int(dec.InputOffset())
	p.value = bytes.Clone(value)
	if p.object[before-1] == '{' { // the first member: remove the comma after it
		rest := bytes.TrimLeft(p.object[p.to:], " \t\r\n")
		if bytes.HasPrefix(rest, []byte{','}) {
			p.to = len(p.object) - len(rest) + 1
		}
	}
	return nil
}
