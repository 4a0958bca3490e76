package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// A newcomer follows WALK.md from function to function: each must be in the file that it names.
func TestWalkNamesFunctionsThatExist(t *testing.T) {
	walk, err := os.ReadFile("WALK.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z0-9_/]+\\.go):([A-Za-z0-9]+)`").FindAllStringSubmatch(string(walk), -1)
	if len(named) < 30 {
		t.Fatalf("%d functions are named", len(named))
	}
	for _, place := range named {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", place[1]), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			continue
		}
		if !declares(file, place[2]) {
			t.Errorf("there is no function %s in %s", place[2], place[1])
		}
	}
}

// declares reports whether a file has a function or a method of that name.
func declares(file *ast.File, name string) bool {
	for _, declaration := range file.Decls {
		if f, ok := declaration.(*ast.FuncDecl); ok && f.Name.Name == name {
			return true
		}
	}
	return false
}
