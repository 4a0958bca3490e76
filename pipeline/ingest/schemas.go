package ingest

import (
	"net/http"
	"strings"

	"github.com/plumbline/plumbline/schema"
	jsonschema "github.com/plumbline/plumbline/schema/json"
)

// schemaEntry is one line of the list of JSON Schemas.
type schemaEntry struct {
	Name  string `json:"name"`
	ID    string `json:"id"` // its $id
	Title string `json:"title"`
	URL   string `json:"url"`
}

const schemasPath = "/v1/schemas"

// listSchemas answers with the list of JSON Schemas.
func listSchemas(w http.ResponseWriter, _ *http.Request) int {
	list := struct {
		Schemas []schemaEntry `json:"schemas"`
	}{}
	for _, d := range jsonschema.Documents() {
		list.Schemas = append(list.Schemas, schemaEntry{d.Name, d.ID, d.Title, schemasPath + "/" + d.Name})
	}
	return writeJSON(w, http.StatusOK, list)
}

// getSchema answers with one JSON Schema, or with 304 to a client that already has it.
func getSchema(w http.ResponseWriter, r *http.Request) int {
	d, found := jsonschema.Lookup(r.PathValue("name"))
	if !found {
		return problemf(http.StatusNotFound, "unknown", "there is no schema of this name: see %s", schemasPath).write(w)
	}
	tag := `"` + schema.DigestOf(d.Text).String() + `"`
	w.Header().Set("ETag", tag)
	w.Header().Set("Cache-Control", "public, max-age=3600")
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return http.StatusNotModified
	}
	w.Header().Set("Content-Type", jsonschema.MediaType)
	return write(w, http.StatusOK, d.Text)
}
