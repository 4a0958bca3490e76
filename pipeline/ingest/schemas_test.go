package ingest

import (
	"encoding/json"
	"net/http"
	"testing"

	jsonschema "github.com/plumbline/plumbline/schema/json"
)

func TestSchemasAreServedToAnybody(t *testing.T) {
	r := start(t, withTokens(t, "secret agent-a traces:write"))
	list := r.send(http.MethodGet, "/v1/schemas", nil)
	var index struct {
		Schemas []struct{ Name, ID, Title, URL string }
	}
	if err := json.Unmarshal([]byte(list.text), &index); err != nil || list.code != http.StatusOK {
		t.Fatalf("%d %s: %v", list.code, list.text, err)
	}
	documents := jsonschema.Documents()
	if len(index.Schemas) != len(documents) {
		t.Fatalf("%d schemas are listed, want %d", len(index.Schemas), len(documents))
	}
	for i, entry := range index.Schemas {
		if entry.Name != documents[i].Name || entry.ID != documents[i].ID || entry.Title == "" {
			t.Errorf("listed as %+v", entry)
		}
		got := r.send(http.MethodGet, entry.URL, nil)
		if got.code != http.StatusOK || got.text != string(documents[i].Text) || got.header.Get("Content-Type") != "application/schema+json" {
			t.Errorf("%s: %d %v", entry.URL, got.code, got.header)
		}
		again := r.send(http.MethodGet, entry.URL, nil, `If-None-Match: "other", `+got.header.Get("ETag"))
		if again.code != http.StatusNotModified || again.text != "" {
			t.Errorf("%s, known to the client: %d %q", entry.URL, again.code, again.text)
		}
		if head := r.send(http.MethodHead, entry.URL, nil); head.code != http.StatusOK || head.text != "" {
			t.Errorf("HEAD %s: %d %q", entry.URL, head.code, head.text)
		}
	}
	if none := r.send(http.MethodGet, "/v1/schemas/trace", nil); none.code != http.StatusNotFound || none.problem(t).Word != "unknown" {
		t.Errorf("no such schema: %d %s", none.code, none.text)
	}
}
