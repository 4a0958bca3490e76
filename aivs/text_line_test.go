package aivs

import (
	"bytes"
	"testing"
)

// Every byte, at every place, beside every kind of neighbour.
func TestIsLine(t *testing.T) {
	for c := range 256 {
		for place := range 19 {
			for _, other := range []byte{' ', '~'} {
				raw := bytes.Repeat([]byte{other}, 19)
				raw[place] = byte(c)
				if got, want := isLine(raw), c < 0x7f && c != '\n' && c != '\r'; got != want {
					t.Fatalf("byte %#x at %d among %q: %v", c, place, other, got)
				}
			}
		}
	}
}
