package redact

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// sensitive are the substrings of draft section 3.3, verbatim.
var sensitive = [...]string{"password", "token", "api_key", "secret", "key", "authorization",
	"bearer", "credential", "passwd", "passphrase"}

// holdsSensitive reports whether name is sensitive by the draft's rule: it contains one of the
// substrings, in upper or lower case.
func holdsSensitive(name string) bool {
	lower := fold(name)
	return slices.ContainsFunc(sensitive[:], func(word string) bool { return strings.Contains(lower, word) })
}

// fold returns a name in lower case. It maps the long s to s, as case-insensitive comparison
// does.
func fold(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), longS, "s")
}

// longS is a small letter whose capital is S.
const longS = "\u017f"

// namesSensitive reports whether name is sensitive outside inputs: it contains one of the words
// as a whole word, or (api_key) as consecutive whole words with any separator or none. A word
// ends where letters end and where camel case changes.
func namesSensitive(name string) bool {
	runes := []rune(name)
	start := 0
	for i := 1; i <= len(runes); i++ {
		if i < len(runes) && !wordEnds(runes, i) {
			continue
		}
		word := fold(strings.TrimFunc(string(runes[start:i]), notWord))
		if word == "apikey" || slices.Contains(sensitive[:], word) { // with a separator, the key of api_key is a word of its own
			return true
		}
		start = i
	}
	return false
}

// wordEnds reports whether a word boundary is before runes[i].
func wordEnds(runes []rune, i int) bool {
	before, here := runes[i-1], runes[i]
	if notWord(before) != notWord(here) {
		return true
	}
	if unicode.IsLower(before) && unicode.IsUpper(here) {
		return true // accessToken
	}
	return unicode.IsUpper(before) && unicode.IsUpper(here) && // APIKey: before the K
		i+1 < len(runes) && unicode.IsLower(runes[i+1])
}

func notWord(r rune) bool { return !unicode.IsLetter(r) }

// mayApply reports whether a text could contain something to hide by the draft's rule or by the
// rules of the set. It is fast and may return true for text that has nothing to hide: it searches
// for the substrings at any position, and returns true for escaped characters and for the
// non-ASCII letters that fold to an ASCII letter: the kelvin sign, the I with a dot, the long s.
func (r Rules) mayApply(text []byte) bool { return r.next(text, 0) < len(text) }

// next returns where the first text that mayApply searches for begins after from, or the end of
// the text where there is none.
func (r Rules) next(text []byte, from int) int {
	next := len(text)
	if sign := r.nextSign(text, from); sign >= 0 {
		next = sign
	}
	for _, other := range [...]string{`\u`, "\u212a", "\u0130", longS} {
		if at := bytes.Index(text[from:next], []byte(other)); at >= 0 {
			next = from + at
		}
	}
	return next
}

// nextSign returns where the first sign of something to hide begins after from: one of the words,
// the beginning of base64 of JSON, or a character that plainRune changes. It returns -1 where
// there is none. Every byte of a session goes through this loop.
func (r Rules) nextSign(text []byte, from int) int {
	var one, two uint16 // signs whose first byte, and whose first two bytes, were just read
	for i := from; i < len(text); i++ {
		l := &letters[text[i]]
		if found := (two | signCharacter) & l.third; found != 0 {
			switch {
			case found&signWord != 0 && startsSensitive(text[i-2:]),
				found&signEncoded != 0 && r.has(RuleBase64) && beginsEncoded(text[i-2:]):
				return i - 2
			case found&signCharacter != 0 && r.has(RuleUnicode) && beginsDisguise(text[i:]):
				return i
			}
		}
		one, two = l.first, one&l.second
	}
	return -1
}

// Bits of signs: one for each beginning of the words, one for base64 of JSON, and one for the
// first byte of a character that plainRune changes.
const (
	signWord      uint16 = 1<<8 - 1
	signEncoded   uint16 = 1 << 8
	signCharacter uint16 = 1 << 9
)

// letters holds for each byte the signs that have it as their first, second or third byte.
var letters = func() (table [256]struct{ first, second, third uint16 }) {
	beginnings := map[string]uint16{}
	for _, word := range sensitive {
		bit, known := beginnings[word[:3]]
		if !known {
			bit = 1 << len(beginnings)
			beginnings[word[:3]] = bit
		}
		for _, w := range [...]string{word, strings.ToUpper(word)} {
			table[w[0]].first |= bit
			table[w[1]].second |= bit
			table[w[2]].third |= bit
		}
	}
	for i := range table {
		table[i].third |= signEncoded
	}
	for _, c := range "eW" {
		table[c].first |= signEncoded
	}
	for _, c := range "yw31" {
		table[c].second |= signEncoded
	}
	for _, c := range []byte(disguiseLeads) {
		table[c].third |= signCharacter
	}
	return table
}()

func startsSensitive(raw []byte) bool {
	return slices.ContainsFunc(sensitive[:], func(word string) bool {
		return len(raw) >= len(word) && strings.EqualFold(string(raw[:len(word)]), word)
	})
}

// plainRune returns the character that a human reads in place of r, or -1 where a human sees none.
// It recognises "ｐａｓｓｗｏｒｄ" in full-width letters and "password" with invisible characters in it
// (RuleUnicode).
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

// isDisguise reports whether plainRune changes a character.
func isDisguise(r rune) bool { return plainRune(r) != r }

// beginsDisguise reports whether a text begins with a character that plainRune changes.
func beginsDisguise(text []byte) bool {
	r, _ := utf8.DecodeRune(text)
	return isDisguise(r)
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
