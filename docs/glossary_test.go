package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// defined matches a term where the glossary defines it.
var defined = regexp.MustCompile(`\*\*([^*]+)\*\*`)

// The glossary defines the words that other documents use, each once.
func TestGlossaryDefinesTermsThatAreUsed(t *testing.T) {
	glossary, err := os.ReadFile("GLOSSARY.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	var others strings.Builder
	for _, file := range append(files, "../README.md") {
		if file == "GLOSSARY.md" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		others.WriteString(strings.Join(strings.Fields(strings.ReplaceAll(strings.ToLower(string(text)), "_", " ")), " ") + "\n")
	}
	var terms []string
	for _, found := range defined.FindAllStringSubmatch(string(glossary), -1) {
		term := found[1]
		if slices.Contains(terms, term) {
			t.Errorf("%s is defined twice", term)
		}
		terms = append(terms, term)
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(strings.ToLower(term)) + `(s|ed|d)?\b`).MatchString(others.String()) {
			t.Errorf("no other document uses %q", term)
		}
	}
	// What a newcomer asked about.
	for _, term := range []string{"card", "trace", "escalation", "session", "part", "seal", "bundle", "receipt", "dead letter", "conflict", "duplicate",
		"baseline", "partition", "lease", "violation", "finding", "verdict", "drift", "ledger", "tenant"} {
		if !slices.Contains(terms, term) {
			t.Errorf("%s is not defined", term)
		}
	}
}

// The table at the end of README has every document.
func TestReadmeListsEveryDocument(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.Contains(string(readme), "| [docs/"+file+"](docs/"+file+") |") {
			t.Errorf("README.md does not list docs/%s", file)
		}
	}
}
