package schema

import "testing"

func TestNesting(t *testing.T) {
	for text, want := range map[string][2]int{
		``: {0, 0}, `1`: {0, 0}, `{}`: {1, 1}, `[[],{"a":[]}]`: {3, 4}, `{"[{":"\\"]}"}`: {1, 1}, `{"\\\\":[]}`: {2, 2},
	} {
		if deepest, values := Nesting([]byte(text)); deepest != want[0] || values != want[1] {
			t.Errorf("%s: %d levels, %d values, want %v", text, deepest, values, want)
		}
	}
}
