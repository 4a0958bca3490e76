package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/schema"
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
	if jsontext.Value(line).Kind() != '{' {
		return nil, nil, errors.New("not a JSON object")
	}
	var members struct {
		Seq  jsontext.Value `json:"seq"`
		Type jsontext.Value `json:"type"`
		Data jsontext.Value `json:"data"`
		Hash jsontext.Value `json:"hash"`
	}
	err = json.Unmarshal(line, &members, json.RejectUnknownMembers(true))
	if unknown, _ := errors.AsType[*json.SemanticError](err); errors.Is(err, json.ErrUnknownName) {
		return nil, nil, fmt.Errorf("member %q is none of seq, type, data, hash", clip(unknown.JSONPointer.LastToken()))
	}
	if err != nil {
		return nil, nil, err
	}
	switch {
	case members.Seq == nil:
		return nil, nil, errors.New("seq is missing")
	case members.Type == nil:
		return nil, nil, errors.New("type is missing")
	case members.Data == nil:
		return nil, nil, errors.New("data is missing")
	case members.Hash == nil:
		return nil, nil, errors.New("hash is missing")
	}
	e = &Entry{}
	seq := string(members.Seq)
	if e.Seq, err = strconv.ParseUint(seq, 10, 64); err != nil || e.Seq > maxSeq || strings.HasPrefix(seq, "0") && seq != "0" {
		return nil, nil, fmt.Errorf("seq %s is not a whole number from 0", clip(seq))
	}
	if e.Type, err = ParseType(unquote(members.Type)); err != nil {
		return nil, nil, err
	}
	if e.Data, err = Canonical(members.Data); err != nil {
		return nil, nil, err
	}
	if e.Hash, err = ParseHash(unquote(members.Hash)); err != nil {
		return nil, nil, err
	}
	return e, members.Data, nil
}

// maxSeq is the highest number that every reader of JSON represents exactly.
const maxSeq = 1<<53 - 1

// unquote returns the text of a JSON string, "" for any other value.
func unquote(value jsontext.Value) string {
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return ""
	}
	return string(text)
}

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
	form, err := schema.Canonical(data)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	if len(form) > MaxDataBytes {
		return nil, fmt.Errorf("data: %d bytes, an entry may have %d", len(form), MaxDataBytes)
	}
	for dec := jsontext.NewDecoder(bytes.NewReader(form)); ; {
		if _, err := dec.ReadToken(); errors.Is(err, io.EOF) {
			return form, nil
		} else if err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
		if dec.StackDepth() > MaxDepth {
			return nil, fmt.Errorf("data: nested deeper than %d", MaxDepth)
		}
	}
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
		form, err := schema.Canonical([]byte(text))
		if err != nil {
			return fmt.Errorf("data: %s: %w", dec.StackPointer(), err)
		}
		if string(form) != text {
			return fmt.Errorf("data: %s: the number %s is written %s in the canonical form, which is what the hash covers", dec.StackPointer(), clip(text), form)
		}
	}
	return nil
}
