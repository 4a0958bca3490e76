package aivs

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// redacted replaces a sensitive value, whatever its type (draft section 3.3).
const redacted = `"[REDACTED]"`

// scope says which rule holds for the names within a value.
type scope int

const (
	elsewhere scope = iota // whole words
	inInputs               // the draft's substrings
)

// hides tells whether the value under a name is hidden.
func (s scope) hides(name string) bool {
	if s == inInputs {
		return holdsSensitive(name)
	}
	return namesSensitive(name)
}

// below is the scope of the value under a name.
func (s scope) below(name string) scope {
	if name == "inputs" || name == "parameters" {
		return inInputs
	}
	return s
}

// RedactInputs redacts a value that holds the inputs of an action (draft
// section 3.3): under every name that contains one of the ten substrings the
// value becomes "[REDACTED]", at any depth, and also inside strings that are JSON
// text. raw must be valid JSON; all bytes outside the replaced values are kept.
// It returns the number of values replaced, and raw itself when that is 0.
func RedactInputs(raw []byte) ([]byte, int, error) { return redact(raw, inInputs, 0) }

// RedactRecord redacts a whole record: members named "inputs" and "parameters",
// wherever they are, as RedactInputs does, and all else where one of the words
// stands in a name as a whole word ("api_key" and "accessToken" are, "max_tokens"
// is not). Strings and names are looked into likewise. See RedactInputs for what it
// takes and returns.
func RedactRecord(raw []byte) ([]byte, int, error) { return redact(raw, elsewhere, 0) }

// RedactText redacts a text of a record, such as an error, as RedactRecord does the
// string that it stands for.
func RedactText(text string) (string, int) {
	hidden, count := redactText([]byte(text), elsewhere, 1)
	return string(hidden), count
}

// redact redacts raw, which is the text of a string in as many others as texts says.
func redact(raw []byte, within scope, texts int) ([]byte, int, error) {
	if !mayHold(raw) {
		return raw, 0, nil
	}
	r := redactor{raw: raw, texts: texts, decoder: jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true))}
	if err := r.all(within); err != nil {
		return nil, 0, fmt.Errorf("redact: %w", err)
	}
	if r.count == 0 {
		return raw, 0, nil
	}
	return append(r.out, raw[r.copied:]...), r.count, nil
}

// redactor walks JSON text and copies it with replacements.
type redactor struct {
	raw     []byte
	texts   int // how many strings raw is within
	decoder *jsontext.Decoder
	out     []byte // raw[:copied], redacted
	copied  int
	count   int
}

// all walks every value of the text.
func (r *redactor) all(within scope) error {
	for {
		if err := r.value(within); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (r *redactor) value(within scope) error {
	switch r.decoder.PeekKind() {
	case '{':
		return r.object(within)
	case '[':
		return r.array(within)
	case '"':
		_, err := r.text(within)
		return err
	default:
		_, err := r.decoder.ReadToken()
		return err
	}
}

func (r *redactor) array(within scope) error {
	if _, err := r.decoder.ReadToken(); err != nil {
		return err
	}
	for r.decoder.PeekKind() != ']' {
		if err := r.value(within); err != nil {
			return cutShort(err)
		}
	}
	_, err := r.decoder.ReadToken()
	return err
}

func (r *redactor) object(within scope) error {
	if _, err := r.decoder.ReadToken(); err != nil {
		return err
	}
	for r.decoder.PeekKind() != '}' {
		if err := r.member(within); err != nil {
			return cutShort(err)
		}
	}
	_, err := r.decoder.ReadToken()
	return err
}

func (r *redactor) member(within scope) error {
	name, err := r.text(within)
	if err != nil {
		return err
	}
	if within.hides(name) {
		value, err := r.decoder.ReadValue()
		if err == nil && string(value) != redacted {
			r.replace(len(value), []byte(redacted), 1)
		}
		return err
	}
	return r.value(within.below(name))
}

// text redacts what in a string, or a name, is JSON text, and returns it as it was.
func (r *redactor) text(within scope) (string, error) {
	value, err := r.decoder.ReadValue()
	if err != nil {
		return "", err
	}
	inner, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return "", err
	}
	if hidden, count := redactText(inner, within, r.texts+1); count > 0 {
		r.replace(len(value), appendString(nil, string(hidden)), count)
	}
	return string(inner), nil
}

// replace puts text in the place of the size bytes just read.
func (r *redactor) replace(size int, text []byte, count int) {
	end := int(r.decoder.InputOffset())
	r.out = append(append(r.out, r.raw[r.copied:end-size]...), text...)
	r.copied = end
	r.count += count
}

// cutShort makes the end of the text inside a value an error of its own.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
