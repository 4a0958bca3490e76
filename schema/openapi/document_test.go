package openapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	validator "github.com/sv-tools/openapi"

	jsonschema "github.com/plumbline/plumbline/schema/json"
)

// The document is valid OpenAPI 3.1, uses every component, and refers to JSON Schemas that exist.
func TestDocumentIsValid(t *testing.T) {
	var tree any
	if err := json.Unmarshal(Text, &tree); err != nil {
		t.Fatal(err)
	}
	referred := map[string]bool{}
	withoutSchemas(tree, referred)
	for name := range referred {
		if _, found := jsonschema.Lookup(name); !found {
			t.Errorf("there is no JSON Schema %q", name)
		}
	}
	for _, name := range []string{"alignment-card", "ap-trace", "value-coherence", "verification-result", "session-verdict"} {
		if !referred[name] {
			t.Errorf("the document does not refer to the JSON Schema %s", name)
		}
	}
	text, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	document := new(validator.Extendable[validator.OpenAPI])
	if err := json.Unmarshal(text, document); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	var known any
	if err := json.Unmarshal(again, &known); err != nil {
		t.Fatal(err)
	}
	for _, place := range lost("", tree, known) {
		t.Errorf("%s is not a member of OpenAPI 3.1", place)
	}
	v, err := validator.NewValidator(document)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.ValidateSpec(); err != nil {
		t.Error(err)
	}
}

// lost returns the places of members that the validator's types do not have.
func lost(place string, all, known any) (places []string) {
	switch all := all.(type) {
	case map[string]any:
		others, _ := known.(map[string]any)
		for name, part := range all {
			empty, isList := part.([]any)
			if other, found := others[name]; found {
				places = append(places, lost(place+"/"+name, part, other)...)
			} else if !isList || len(empty) > 0 { // empty lists are left out when they are encoded
				places = append(places, place+"/"+name)
			}
		}
	case []any:
		others, _ := known.([]any)
		for i, part := range all {
			if i < len(others) {
				places = append(places, lost(fmt.Sprintf("%s/%d", place, i), part, others[i])...)
			} else {
				places = append(places, fmt.Sprintf("%s/%d", place, i))
			}
		}
	}
	return places
}

// withoutSchemas removes the references to JSON Schemas, which the validator does not follow, and
// notes their names.
func withoutSchemas(node any, names map[string]bool) {
	switch node := node.(type) {
	case []any:
		for _, part := range node {
			withoutSchemas(part, names)
		}
	case map[string]any:
		if ref, _ := node["$ref"].(string); strings.HasPrefix(ref, "schemas/") {
			names[strings.TrimPrefix(ref, "schemas/")] = true
			delete(node, "$ref")
		}
		for _, part := range node {
			withoutSchemas(part, names)
		}
	}
}

// Every operation has what a reader and a generator of clients need: an id of its own, a summary, and
// the answers that any request can get.
func TestOperationsAreComplete(t *testing.T) {
	var document struct {
		Paths map[string]map[string]struct {
			OperationID string                `json:"operationId"`
			Summary     string                `json:"summary"`
			Security    []map[string][]string `json:"security"`
			RequestBody any                   `json:"requestBody"`
			Responses   map[string]any        `json:"responses"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(Text, &document); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for path, operations := range document.Paths {
		for method, o := range operations {
			ids = append(ids, o.OperationID)
			want := []string{}
			if len(o.Security) > 0 {
				want = append(want, "401", "403", "503")
			}
			if o.RequestBody != nil {
				want = append(want, "400", "408", "413", "415")
			}
			for _, code := range want {
				if o.Responses[code] == nil {
					t.Errorf("%s %s has no answer %s", method, path, code)
				}
			}
			if o.Summary == "" || o.Security == nil {
				t.Errorf("%s %s has no summary, or does not say which token it needs", method, path)
			}
		}
	}
	slices.Sort(ids)
	if distinct := slices.Compact(slices.Clone(ids)); len(distinct) != len(ids) || len(ids) < 30 {
		t.Errorf("operations have ids %v", ids)
	}
}
