package requests

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	jsonschemas "github.com/plumbline/plumbline/schema/json"
	"github.com/plumbline/plumbline/schema/openapi"
)

// documentURL is where the document would be. Its references to JSON Schemas are relative to it.
const documentURL = "http://ingest.invalid/v1/openapi.json"

// document is the OpenAPI document, prepared to check answers.
type document struct {
	mux      *http.ServeMux // its routes; the handlers are never called
	paths    map[string]map[string]operation
	compiler *jsonschema.Compiler

	mu       sync.Mutex
	compiled map[string]*jsonschema.Schema // by place in the document
}

type operation struct {
	Responses map[string]response `json:"responses"`
}

type response struct {
	Ref     string `json:"$ref"`
	Content map[string]struct {
		Schema json.RawMessage `json:"schema"`
	} `json:"content"`
}

var described = sync.OnceValues(func() (*document, error) {
	var parsed struct {
		Paths map[string]map[string]operation `json:"paths"`
	}
	if err := json.Unmarshal(openapi.Text, &parsed); err != nil {
		return nil, err
	}
	d := &document{mux: http.NewServeMux(), paths: parsed.Paths, compiler: jsonschema.NewCompiler(), compiled: map[string]*jsonschema.Schema{}}
	for path, operations := range parsed.Paths {
		for method := range operations {
			d.mux.Handle(strings.ToUpper(method)+" "+path, http.NotFoundHandler())
		}
	}
	d.compiler.AssertFormat()
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(openapi.Text))
	if err != nil {
		return nil, err
	}
	closed(tree)
	if err := d.compiler.AddResource(documentURL, tree); err != nil {
		return nil, err
	}
	for _, s := range jsonschemas.Documents() {
		tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(s.Text))
		if err != nil {
			return nil, err
		}
		if err := d.compiler.AddResource(s.ID, tree); err != nil { // the schemas refer to one another by id
			return nil, err
		}
		byAddress := map[string]any{"$ref": s.ID}
		if err := d.compiler.AddResource(strings.TrimSuffix(documentURL, "openapi.json")+"schemas/"+s.Name, byAddress); err != nil {
			return nil, err
		}
	}
	return d, nil
})

// closed makes every object of the document's schemas refuse members that it does not name.
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
		if _, named := node["properties"]; named && node["type"] == "object" {
			node["unevaluatedProperties"] = false
		}
	}
}

// Describes fails the test if the OpenAPI document has the route of a request and does not describe its
// answer: the status, and a JSON body.
func Describes(t testing.TB, r *http.Request, code int, header http.Header, text string) {
	t.Helper()
	d, err := described()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.check(r, code, header, text); err != nil {
		t.Errorf("%s %s was answered %d %.500q, which schema/openapi/openapi.json does not describe: %v", r.Method, r.URL.Path, code, text, err)
	}
}

func (d *document) check(r *http.Request, code int, header http.Header, text string) error {
	_, pattern := d.mux.Handler(r)
	method, path, found := strings.Cut(pattern, " ")
	if !found {
		return nil // without a route
	}
	place := "/paths/" + escaped(path) + "/" + strings.ToLower(method) + "/responses/" + fmt.Sprint(code)
	answer, found := d.paths[path][strings.ToLower(method)].Responses[fmt.Sprint(code)]
	if !found {
		return fmt.Errorf("it has no status %d of %s", code, pattern)
	}
	if r.Method == http.MethodHead || text == "" {
		return nil
	}
	if strings.HasPrefix(answer.Ref, "#") {
		place = strings.TrimPrefix(answer.Ref, "#")
		var whole struct {
			Components struct {
				Responses map[string]response `json:"responses"`
			} `json:"components"`
		}
		if err := json.Unmarshal(openapi.Text, &whole); err != nil {
			return err
		}
		answer = whole.Components.Responses[strings.TrimPrefix(place, "/components/responses/")]
	}
	media, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return err
	}
	if _, found := answer.Content[media]; !found {
		return fmt.Errorf("it has no body of type %s at %s", media, place)
	}
	if !strings.Contains(media, "json") {
		return nil
	}
	return d.validate(place+"/content/"+escaped(media)+"/schema", media == "application/x-ndjson", text)
}

// escaped returns a name as a part of a JSON pointer.
func escaped(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// validate checks a body, or each line of it, against the schema at a place of the document.
func (d *document) validate(place string, lines bool, text string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	schema := d.compiled[place]
	if schema == nil {
		var err error
		if schema, err = d.compiler.Compile(documentURL + "#" + strings.NewReplacer("{", "%7B", "}", "%7D").Replace(place)); err != nil {
			return err
		}
		d.compiled[place] = schema
	}
	bodies := []string{text}
	if lines {
		bodies = nil
		for scanner := bufio.NewScanner(strings.NewReader(text)); scanner.Scan() && len(bodies) < checkedLines; {
			bodies = append(bodies, scanner.Text())
		}
	}
	for _, body := range bodies {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
		if err != nil {
			return err
		}
		if err := schema.Validate(value); err != nil {
			return err
		}
	}
	return nil
}

// checkedLines is how many lines of an answer are checked: some tests have 100,000.
const checkedLines = 50
