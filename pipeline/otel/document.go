package otel

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// document writes an object of objects. Members are set in order: those of one object are neighbours.
type document struct {
	text []byte
	path []string // the objects that are open
}

// set adds a member by its path.
func (d *document) set(path string, raw jsontext.Value) {
	at := strings.LastIndexByte(path, '.')
	d.setName(path[:max(at, 0)], path[at+1:], raw)
}

// setName adds a member with any name to the object at a path; "" is the outermost object.
func (d *document) setName(path, name string, raw jsontext.Value) {
	var names []string
	if path != "" {
		names = strings.Split(path, ".")
	}
	if len(d.text) == 0 {
		d.text = append(d.text, '{')
	}
	common := 0
	for common < len(names) && common < len(d.path) && names[common] == d.path[common] {
		common++
	}
	for range d.path[common:] {
		d.text = append(d.text, '}')
	}
	for _, object := range names[common:] {
		d.name(object)
		d.text = append(d.text, '{')
	}
	d.path = names
	d.name(name)
	d.text = append(d.text, raw...)
}

func (d *document) name(name string) {
	if d.text[len(d.text)-1] != '{' {
		d.text = append(d.text, ',')
	}
	d.text = append(append(d.text, quote(name)...), ':')
}

// end closes the document and returns it.
func (d *document) end() jsontext.Value {
	if len(d.text) == 0 {
		d.text = append(d.text, '{')
	}
	for range d.path {
		d.text = append(d.text, '}')
	}
	return append(d.text, '}')
}
