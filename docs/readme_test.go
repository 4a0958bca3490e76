package docs

import (
	"os"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema"
)

func TestReadmeShowsTheLimitations(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, limitation := range schema.Limitations() {
		if !strings.Contains(string(text), limitation) {
			t.Errorf("README.md lacks: %s", limitation)
		}
	}
}
