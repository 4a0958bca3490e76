package aivs

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// This file sees through names that only look like what they are (RuleUnicode):
// "ｐａｓｓｗｏｒｄ" in full-width letters, or "password" with characters in it that no
// reader sees.

// plainRune returns the character that a reader takes r for; -1 where a reader sees none.
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

// beginsDisguise reports whether a text begins with a character that is not what it
// looks like.
func beginsDisguise(text []byte) bool {
	r, _ := utf8.DecodeRune(text)
	return plainRune(r) != r
}

// disguises reports whether a text has a character that is not what it looks like.
func disguises(text []byte) bool {
	return bytes.ContainsFunc(text, func(r rune) bool { return plainRune(r) != r })
}

// plainName is a name as a reader takes it.
func plainName(name string) string { return strings.Map(plainRune, name) }

// plainText is a text as a reader takes it, and the place in the text of each of its
// bytes; one more for its end.
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
			plain, places = append(plain, byte(p)), append(places, at) // full-width forms stand for ASCII
		}
		at = next
	}
	return plain, append(places, len(text))
}
