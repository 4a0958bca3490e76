package jsonschema_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	documents "github.com/plumbline/plumbline/schema/json"
)

// compile adds every document, modified by change, to a compiler that checks formats, and
// returns the schema called name.
func compile(t testing.TB, name string, change func(any)) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	id := ""
	for _, d := range documents.Documents() {
		tree := parse(t, d.Text)
		if change != nil {
			change(tree)
		}
		if err := compiler.AddResource(d.ID, tree); err != nil {
			t.Fatal(err)
		}
		if d.Name == name {
			id = d.ID
		}
	}
	compiled, err := compiler.Compile(id)
	if err != nil {
		t.Fatalf("schema %s: %v", name, err)
	}
	return compiled
}

func parse(t testing.TB, text []byte) any {
	t.Helper()
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return tree
}

// closed makes every object of a schema refuse members that it does not name, unless the schema
// explicitly allows them.
func closed(node any) {
	switch node := node.(type) {
	case []any:
		for _, part := range node {
			closed(part)
		}
	case map[string]any:
		for _, part := range node {
			closed(part)
		}
		_, named := node["properties"]
		_, open := node["additionalProperties"]
		if node["type"] == "object" && named && !open {
			node["unevaluatedProperties"] = false
		}
	}
}

// validate checks a value, as it is encoded, against a schema.
func validate(t testing.TB, s *jsonschema.Schema, value any) {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(parse(t, text)); err != nil {
		t.Errorf("%s: %v", text, err)
	}
}

func TestDocumentsAreSchemas(t *testing.T) {
	var names []string
	for _, d := range documents.Documents() {
		names = append(names, d.Name)
		compile(t, d.Name, nil)
		tree, ok := parse(t, d.Text).(map[string]any)
		if !ok || tree["$schema"] != "https://json-schema.org/draft/2020-12/schema" || d.ID == "" || d.Title == "" || tree["description"] == nil {
			t.Errorf("%s: draft, $id, title or description is missing", d.Name)
		}
		if found, ok := documents.Lookup(d.Name); !ok || found.ID != d.ID {
			t.Errorf("%s is not found by its name", d.Name)
		}
	}
	want := []string{"alignment-card", "ap-trace", "drift-alert", "loop-alert", "session-verdict", "value-coherence", "verification-result"}
	if !slices.Equal(names, want) {
		t.Errorf("there are %v, want %v", names, want)
	}
	if _, found := documents.Lookup("../documents"); found {
		t.Error("an invalid name is found")
	}
}
