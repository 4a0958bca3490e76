package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// goBlock matches a block of Go code in a document.
var goBlock = regexp.MustCompile("(?s)\n```go\n(.*?)```\n")

// Every block of Go code in a document is the body of an Example function or a part of one, which
// the tests compile and run.
func TestGoCodeOfDocumentsIsTested(t *testing.T) {
	bodies := exampleBodies(t)
	documents, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	for _, name := range append(documents, "../README.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range goBlock.FindAllStringSubmatch(string(text), -1) {
			if blocks++; !slices.ContainsFunc(bodies, func(body string) bool { return strings.Contains(body, block[1]) }) {
				t.Errorf("%s: this is not part of the body of an Example function in an example_test.go:\n%s", name, block[1])
			}
		}
	}
	if blocks < 2 {
		t.Errorf("the documents have %d blocks of Go code: the expression has gone stale", blocks)
	}
}

// exampleBodies returns the bodies of all Example functions, without their indentation.
func exampleBodies(t *testing.T) (bodies []string) {
	t.Helper()
	for _, pattern := range []string{"../*/example_test.go", "../*/*/example_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			source, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, declaration := range file.Decls {
				if f, ok := declaration.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Example") {
					body := string(source[f.Body.Lbrace-file.FileStart+2 : f.Body.Rbrace-file.FileStart])
					bodies = append(bodies, strings.TrimPrefix(strings.ReplaceAll("\n"+body, "\n\t", "\n"), "\n"))
				}
			}
		}
	}
	return bodies
}
