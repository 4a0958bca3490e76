package docs

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// address matches a route in the first column of the table.
var address = regexp.MustCompile("`(GET|POST|PUT|DELETE) (/[^`]+)`")

// The table of PUBLISH.md has the routes of the OpenAPI document, each with its scope, and no others.
func TestAddressesAreThoseOfTheOpenAPIDocument(t *testing.T) {
	text, err := os.ReadFile("PUBLISH.md")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string]string{} // scopes
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		for _, route := range address.FindAllStringSubmatch(cells[1], -1) {
			table[route[1]+" "+route[2]] = strings.Trim(strings.TrimSpace(cells[2]), "`")
		}
	}
	text, err = os.ReadFile("../schema/openapi/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]struct {
			Security []map[string][]string `json:"security"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	for path, operations := range document.Paths {
		for method, operation := range operations {
			route, want := strings.ToUpper(method)+" "+path, "none"
			if len(operation.Security) > 0 {
				want = operation.Security[0]["token"][0]
			}
			if got := table[route]; got != want {
				t.Errorf("PUBLISH.md has the scope %q for %s, want %q", got, route, want)
			}
			delete(table, route)
		}
	}
	var others []string
	for route := range table {
		others = append(others, route)
	}
	if slices.Sort(others); len(others) > 0 {
		t.Errorf("PUBLISH.md has %q, which the document does not have", others)
	}
}
