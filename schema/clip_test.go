package schema_test

import (
	"testing"

	"github.com/plumbline/plumbline/schema"
)

func TestClip(t *testing.T) {
	for _, test := range []struct {
		text string
		most int
		want string
	}{
		{"", 0, ""},
		{"whole", 5, "whole"},
		{"longer", 4, "long…"},
		{"né", 2, "n…"}, // no half characters
		{"日本", 3, "日…"},
		{"日本", 6, "日本"},
	} {
		if got := schema.Clip(test.text, test.most); got != test.want {
			t.Errorf("Clip(%q, %d) = %q, want %q", test.text, test.most, got, test.want)
		}
	}
}
