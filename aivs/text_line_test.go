package aivs

import (
	"bytes"
	"testing"
)

// Text is written as Python's json.dumps writes it: a character beyond U+FFFF as two escapes.
func TestTextIsASCII(t *testing.T) {
	for text, want := range map[string]string{
		"a~":                 `"a~"`,
		"\"\\/\b\f\n\r\t":    `"\"\\/\b\f\n\r\t"`,
		"\x00\x1f\x7f\u0080": `"\u0000\u001f\u007f\u0080"`,
		"\uffff\U00010000":   `"\uffff\ud800\udc00"`,
		"\U0001f600":         `"\ud83d\ude00"`,
		"\U0010ffff":         `"\udbff\udfff"`,
	} {
		if got := string(appendString(nil, text)); got != want {
			t.Errorf("%q became %s, want %s", text, got, want)
		}
	}
}

// The test covers every byte at every place, next to every kind of neighbour.
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
