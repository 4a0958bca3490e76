package docs

import (
	"os"
	"regexp"
	"testing"

	"github.com/plumbline/plumbline/pipeline/reconcile"
)

// differenceInDocument matches a kind at the beginning of a row of CHECK.md's table.
var differenceInDocument = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|")

func TestEveryDifferenceIsDocumented(t *testing.T) {
	text, err := os.ReadFile("CHECK.md")
	if err != nil {
		t.Fatal(err)
	}
	kinds := reconcile.Kinds()
	documented := map[reconcile.Kind]bool{}
	for _, match := range differenceInDocument.FindAllStringSubmatch(string(text), -1) {
		kind := reconcile.Kind(match[1])
		if kinds[kind] == "" {
			t.Errorf("%s is in CHECK.md, and is none", kind)
		}
		documented[kind] = true
	}
	for kind := range kinds {
		if !documented[kind] {
			t.Errorf("%s is not in CHECK.md", kind)
		}
	}
}
