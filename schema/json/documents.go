// Package jsonschema holds the JSON Schemas (2020-12) of what publishers send
// and readers get: cards and traces (AAP sections 4 and 5), handshake messages
// (6.3), verdicts (7.2, 7.4) and drift alerts (8.4).
//
// It owns the documents and nothing else. Package schema decides what is
// admitted; its strict decoders are quicker than any schema and know rules that
// no schema can say. A test holds the two against each other.
package jsonschema

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
)

// MediaType is what a schema is served as.
const MediaType = "application/schema+json"

// Document is one JSON Schema.
type Document struct {
	Name  string // what it is served under: "ap-trace"
	ID    string // its $id
	Title string
	Text  []byte // shared: not to be written to
}

//go:embed *.schema.json
var files embed.FS

const suffix = ".schema.json"

var documents = sync.OnceValue(func() []Document {
	names, err := fs.Glob(files, "*"+suffix)
	if err != nil {
		panic(fmt.Sprintf("jsonschema: %v", err))
	}
	all := make([]Document, len(names))
	for i, name := range names {
		all[i] = read(name)
	}
	return all
})

// read parses an embedded document; that it parses is tested.
func read(name string) Document {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(fmt.Sprintf("jsonschema: %v", err))
	}
	head := struct {
		ID    string `json:"$id"`
		Title string `json:"title"`
	}{}
	if err := json.Unmarshal(text, &head); err != nil {
		panic(fmt.Sprintf("jsonschema: %s: %v", name, err))
	}
	return Document{Name: strings.TrimSuffix(path.Base(name), suffix), ID: head.ID, Title: head.Title, Text: text}
}

// Documents returns all schemas in order of their names.
func Documents() []Document { return slices.Clone(documents()) }

// Lookup returns the schema called name.
func Lookup(name string) (Document, bool) {
	all := documents()
	if i := slices.IndexFunc(all, func(d Document) bool { return d.Name == name }); i >= 0 {
		return all[i], true
	}
	return Document{}, false
}
