package report

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"testing"
)

// Each type of violation, finding and warning has a sentence.
func TestEveryRemarkHasWords(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../schema/verdict.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	types, isType := 0, regexp.MustCompile(`^([A-Z]+_[A-Z_]+|[a-z]+_[a-z_]+)$`)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Type != nil || len(spec.Values) != 1 {
			return true
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		name, err := strconv.Unquote(literal.Value)
		if err != nil || !isType.MatchString(name) && name != "BACKDATED" && name != "uncomparable" {
			return true
		}
		if types++; remarkWords[name] == "" {
			t.Errorf("%s has no sentence", name)
		}
		return true
	})
	if types < 40 || types != len(remarkWords) {
		t.Errorf("schema has %d types, %d have a sentence", types, len(remarkWords))
	}
}
