package docs

import (
	"bytes"
	"image/png"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema"
)

// The pictures of the README are there, and small. make pictures takes them.
func TestPicturesOfTheReadme(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`!\[[^\]]+\]\(([^)]+)\)`).FindAllSubmatch(text, -1)
	if len(found) != 3 {
		t.Errorf("README.md has %d pictures, want 3", len(found))
	}
	for _, match := range found {
		picture, err := os.ReadFile("../" + string(match[1]))
		if err != nil {
			t.Error(err)
			continue
		}
		if shape, err := png.DecodeConfig(bytes.NewReader(picture)); err != nil || len(picture) >= 150_000 || shape.Width < 1000 {
			t.Errorf("%s: %d bytes, %d pixels wide, %v", match[1], len(picture), shape.Width, err)
		}
	}
}

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
