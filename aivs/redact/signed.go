package redact

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Signed redacts an object as Record does, and hides the value of its signature (AAP section 9.2:
// members "signature", "value") if it hides anything that the signature covers. Such a signature
// cannot be checked any more, but it would confirm a guess of what is hidden. The signature does not
// cover itself: if only its key_id is hidden, its value stays. It counts as a replacement of the
// draft's rule.
func (r Rules) Signed(raw []byte) ([]byte, Count, error) {
	hidden, count, err := r.Record(raw)
	if err != nil || count.Sum() == 0 {
		return hidden, count, err
	}
	was, err := member(raw, "signature")
	if err != nil || !was.found {
		return hidden, count, err
	}
	is, err := member(hidden, "signature")
	if err != nil {
		return nil, Count{}, err
	}
	if bytes.Equal(raw[:was.from], hidden[:is.from]) && bytes.Equal(raw[was.to:], hidden[is.to:]) {
		return hidden, count, nil
	}
	at := is
	if hidden[is.from] == '{' {
		value, err := member(hidden[is.from:is.to], "value")
		if err != nil || !value.found {
			return hidden, count, err
		}
		at.from, at.to = is.from+value.from, is.from+value.to
	}
	const quotedMark = `"` + Mark + `"`
	if string(hidden[at.from:at.to]) == quotedMark {
		return hidden, count, nil
	}
	count.Draft++
	return append(append(append(make([]byte, 0, len(hidden)+len(quotedMark)), hidden[:at.from]...), quotedMark...), hidden[at.to:]...), count, nil
}

// valueAt is where the value of a member is in its object.
type valueAt struct {
	from, to int
	found    bool
}

// member finds a member of an object by its name.
func member(object []byte, name string) (valueAt, error) {
	in := jsontext.NewDecoder(bytes.NewBuffer(object), jsontext.AllowDuplicateNames(true))
	if in.PeekKind() != '{' {
		return valueAt{}, nil
	}
	if _, err := in.ReadToken(); err != nil {
		return valueAt{}, fmt.Errorf("redact: %w", err)
	}
	for in.PeekKind() == '"' {
		token, err := in.ReadToken()
		if err != nil {
			return valueAt{}, fmt.Errorf("redact: %w", err)
		}
		found := token.String() == name
		value, err := in.ReadValue()
		if err != nil {
			return valueAt{}, fmt.Errorf("redact: %w", err)
		}
		if to := int(in.InputOffset()); found {
			return valueAt{from: to - len(value), to: to, found: true}, nil
		}
	}
	return valueAt{}, nil
}
