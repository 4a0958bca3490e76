package aivs

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// This file finds names that contain look-alike or invisible characters (RuleUnicode): "ｐａｓｓｗｏｒｄ"
// in full-width letters, or "password" with characters in it that readers do not see.

// plainRune returns the character that a human reads in place of r, or -1 where a human sees
// none.
func plainRune(r rune) rune {
	switch {
	case r >= 0xff01 && r <= 0xff5e: // the full-width forms of ! to ~
		return r - 0xff01 + '!'
	case r == 0x3000: // the full-width space
		return ' '
	case unicode.Is(unicode.Cf, r), r == 0x034f, r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0, unicode.Is(unicode.Variation_Selector, r):
		return -1
	}
	return r
}

// disguiseLeads are the first bytes of the characters that plainRune changes.
const disguiseLeads = "\xc2\xcd\xd8\xdb\xdc\xe0\xe1\xe2\xe3\xef\xf0\xf3"

// beginsDisguise reports whether a text begins with a character that plainRune changes.
func beginsDisguise(text []byte) bool {
	r, _ := utf8.DecodeRune(text)
	return plainRune(r) != r
}

// disguises reports whether a text has a character that plainRune changes.
func disguises(text []byte) bool {
	return bytes.ContainsFunc(text, func(r rune) bool { return plainRune(r) != r })
}

// plainName returns a name as a human reads it.
func plainName(name string) string { return strings.Map(plainRune, name) }

// plainText returns a text as a human reads it, and for each of its bytes the place in the
// original text. The places have one more entry, for the end.
func plainText(text []byte) ([]byte, []int) {
	plain, places := make([]byte, 0, len(text)), make([]int, 0, len(text))
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		next := at + size
		if p := plainRune(r); p == r {
			for ; at < next; at++ {
				plain, places = append(plain, text[at]), append(places, at)
			}
		} else if p != -1 {
			plain, places = append(plain, byte(p)), append(places, at) // full-width forms represent ASCII
		}
		at = next
	}
	return plain, append(places, len(text))
}
