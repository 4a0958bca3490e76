// Package jsonschema holds the JSON Schemas (2020-12) of the records that publishers send and
// readers receive: cards and traces (AAP sections 4 and 5), handshake messages (6.3), verdicts
// (7.2, 7.4), drift alerts (8.4) and alerts about loops.
//
// It owns only the documents. Package schema decides which records are admitted: its strict
// decoders are faster than any schema, and they know rules that no schema can express. A test
// compares the two.
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

// MediaType is the media type under which a schema is served.
const MediaType = "application/schema+json"

// Document is one JSON Schema.
type Document struct {
	Name  string // the name under which it is served: "ap-trace"
	ID    string // its $id
	Title string
	Text  []byte // shared: do not modify
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
	for i, name := range names { // a test proves that all of them parse
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
		all[i] = Document{Name: strings.TrimSuffix(path.Base(name), suffix), ID: head.ID, Title: head.Title, Text: text}
	}
	return all
})

// Documents returns all schemas, ordered by name.
func Documents() []Document { return slices.Clone(documents()) }

// Lookup returns the schema called name.
func Lookup(name string) (Document, bool) {
	all := documents()
	if i := slices.IndexFunc(all, func(d Document) bool { return d.Name == name }); i >= 0 {
		return all[i], true
	}
	return Document{}, false
}
