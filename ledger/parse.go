package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// ParseLine reads an entry from a line of a ledger file. It is ParseEntry that also demands
// numbers in canonical form, so a reader of the file in another program reads nothing that the
// hash does not cover.
func ParseLine(line []byte) (*Entry, error) {
	e, data, err := parse(line)
	if err == nil {
		err = checkTexts(data)
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

// ParseEntry reads an entry. Each of the four members must occur once, and no other member may:
// a hash would not cover it. The data of the result is canonical. ParseEntry does not check the
// hash.
func ParseEntry(text []byte) (*Entry, error) {
	e, _, err := parse(text)
	return e, err
}

// parse returns an entry, and its data as written.
func parse(line []byte) (e *Entry, data jsontext.Value, err error) {
	e = &Entry{}
	fields := map[string]bool{}
	dec := jsontext.NewDecoder(bytes.NewReader(line))
	if token, err := dec.ReadToken(); err != nil || token.Kind() != '{' {
		return nil, nil, errors.New("not a JSON object")
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, nil, err
		}
		field := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return nil, nil, err
		}
		if err := e.set(field, value); err != nil {
			return nil, nil, err
		}
		if fields[field] = true; field == "data" {
			data = value.Clone()
		}
	}
	for _, name := range []string{"seq", "type", "data", "hash"} {
		if !fields[name] {
			return nil, nil, fmt.Errorf("%s is missing", name)
		}
	}
	if err := ended(dec); err != nil {
		return nil, nil, err
	}
	return e, data, nil
}

// ended returns an error unless the object is complete and nothing follows it.
func ended(dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	return atEnd(dec)
}

// atEnd returns an error if anything follows.
func atEnd(dec *jsontext.Decoder) error {
	switch _, err := dec.ReadToken(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	return errors.New("more than one JSON value")
}

func (e *Entry) set(name string, value jsontext.Value) (err error) {
	switch name {
	case "seq":
		e.Seq, err = parseSeq(string(value))
	case "type":
		e.Type, err = ParseType(unquote(value))
	case "data":
		e.Data, err = Canonical(value)
	case "hash":
		e.Hash, err = ParseHash(unquote(value))
	default:
		err = fmt.Errorf("member %q is none of seq, type, data, hash", clip(name))
	}
	return err
}

// maxSeq is the highest number that every reader of JSON represents exactly.
const maxSeq = 1<<53 - 1

func parseSeq(text string) (uint64, error) {
	seq, err := strconv.ParseUint(text, 10, 64)
	if err != nil || seq > maxSeq || strings.HasPrefix(text, "0") && text != "0" {
		return 0, fmt.Errorf("seq %s is not a whole number from 0", clip(text))
	}
	return seq, nil
}

// unquote returns the text of a JSON string, "" for any other value.
func unquote(value jsontext.Value) string {
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return ""
	}
	return string(text)
}

// member returns a string member of a JSON object.
func member(object []byte, name string) (text string, found bool, err error) {
	dec := jsontext.NewDecoder(bytes.NewReader(object))
	if _, err := dec.ReadToken(); err != nil {
		return "", false, err
	}
	for dec.PeekKind() == '"' {
		key, err := dec.ReadToken()
		if err != nil {
			return "", false, err
		}
		matches := key.String() == name
		value, err := dec.ReadValue()
		if err != nil {
			return "", false, err
		}
		if matches {
			return unquote(value), true, nil
		}
	}
	return "", false, nil
}
