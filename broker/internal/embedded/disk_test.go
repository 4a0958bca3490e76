package embedded

import "testing"

func TestShareOfTheDisk(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		what                    string
		held, free, whole, want int64
	}{
		{"a small disk", 0, 64, 64, 56},
		{"a large one", 0, 200 * gib, 256 * gib, 184 * gib},
		{"the same, when the store has grown", 100 * gib, 100 * gib, 256 * gib, 184 * gib},
		{"a large one that others have nearly filled", 0, 10 * gib, 256 * gib, 5 * gib},
		{"a store that has most of what is left", 9 * gib, gib, 256 * gib, 9 * gib},
		{"a full disk", 0, 0, 256 * gib, 0},
	} {
		if got := share(c.held, c.free, c.whole); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
}
