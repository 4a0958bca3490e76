package condition

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// equalStructures reports whether two arrays or objects have the same content. White space, the
// order of an object's members, and the notation of texts and numbers make no difference.
func equalStructures(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, errX := ordered(a)
	y, errY := ordered(b)
	if errX != nil || errY != nil {
		return false
	}
	for {
		v, errV := x.ReadToken()
		w, errW := y.ReadToken()
		if errV != nil || errW != nil {
			return errors.Is(errV, io.EOF) && errors.Is(errW, io.EOF)
		}
		if !equalTokens(v, w) {
			return false
		}
	}
}

// ordered returns a decoder of raw with the members of its objects sorted.
func ordered(raw []byte) (*jsontext.Decoder, error) {
	text, err := jsontext.AppendFormat(nil, raw, jsontext.ReorderRawObjects(true), jsontext.AllowDuplicateNames(true))
	if err != nil {
		return nil, err
	}
	return jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true)), nil
}

func equalTokens(v, w jsontext.Token) bool {
	if v.Kind() != w.Kind() {
		return false
	}
	switch v.Kind() {
	case '"':
		return v.String() == w.String()
	case '0':
		return compareDecimals(v.String(), w.String()) == 0
	}
	return true
}
