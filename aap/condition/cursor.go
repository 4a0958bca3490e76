package condition

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// Cursor reads parts of raw JSON that is known to be valid. A reused Cursor does not allocate.
// It is not safe for concurrent use; the zero value is ready.
type Cursor struct {
	source bytes.Buffer
	dec    *jsontext.Decoder
	raw    []byte
}

func (c *Cursor) reset(raw []byte) {
	c.raw, c.source = raw, *bytes.NewBuffer(raw)
	if c.dec == nil {
		c.dec = jsontext.NewDecoder(&c.source, jsontext.AllowDuplicateNames(true))
		return
	}
	c.dec.Reset(&c.source, jsontext.AllowDuplicateNames(true))
}

// Find returns the value at path inside the object raw, and whether there is one. Array
// elements have no names, so no path leads into an array.
func (c *Cursor) Find(raw []byte, path []string) ([]byte, bool) {
	c.reset(raw)
	for _, name := range path {
		if !c.enter('{') || !c.seek(name) {
			return nil, false
		}
	}
	return c.value()
}

// Each calls f with the elements of the array raw until f returns false.
func (c *Cursor) Each(raw []byte, f func(element []byte) bool) {
	c.reset(raw)
	if !c.enter('[') {
		return
	}
	for c.dec.PeekKind() != ']' {
		element, ok := c.value()
		if !ok || !f(element) {
			return
		}
	}
}

func (c *Cursor) enter(kind jsontext.Kind) bool {
	if c.dec.PeekKind() != kind {
		return false
	}
	_, err := c.dec.ReadToken()
	return err == nil
}

// seek reads members up to the value of the member called name.
func (c *Cursor) seek(name string) bool {
	for c.dec.PeekKind() == '"' {
		found, ok := c.value()
		if !ok {
			return false
		}
		if unquote(found) == name {
			return true
		}
		if err := c.dec.SkipValue(); err != nil {
			return false
		}
	}
	return false
}

// value reads the next value; it aliases raw.
func (c *Cursor) value() ([]byte, bool) {
	v, err := c.dec.ReadValue()
	if err != nil {
		return nil, false
	}
	end := int(c.dec.InputOffset())
	return c.raw[end-len(v) : end], true
}
