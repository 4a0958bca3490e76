package aivs

import (
	"bytes"
	"strings"
	"unicode"
)

// sensitive are the substrings of draft section 3.3, verbatim.
var sensitive = [...]string{"password", "token", "api_key", "secret", "key", "authorization",
	"bearer", "credential", "passwd", "passphrase"}

// holdsSensitive reports whether name is sensitive by the draft's rule: it contains one of the
// substrings, in upper or lower case.
func holdsSensitive(name string) bool {
	lower := fold(name)
	for _, word := range sensitive {
		if strings.Contains(lower, word) {
			return true
		}
	}
	return false
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
		if isSensitiveWord(word) {
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

func isSensitiveWord(word string) bool {
	if word == "apikey" { // api_key without its separator; with a separator, key is a word of its own
		return true
	}
	for _, s := range sensitive {
		if word == s {
			return true
		}
	}
	return false
}

// mayHold reports whether raw could contain a sensitive name. It is fast and may return true for
// text that has none: it searches for the substrings at any position, and returns true for
// escaped characters and for the non-ASCII letters that fold to an ASCII letter: the kelvin sign,
// the I with a dot, the long s.
func mayHold(raw []byte) bool { return NoRules.mayApply(raw) }

// mayApply reports whether a text could contain something to hide by the draft's rule or by the
// rules of the set. It is fast and may return true for text that has nothing to hide.
func (r Rules) mayApply(text []byte) bool {
	if r.nextSign(text, 0) >= 0 {
		return true
	}
	for _, other := range [...]string{`\u`, "\u212a", "\u0130", longS} {
		if bytes.Contains(text, []byte(other)) {
			return true
		}
	}
	return false
}

// sensitiveWord returns where the first of the words after from begins, in upper or lower case;
// -1 where there is none.
func sensitiveWord(raw []byte, from int) int { return NoRules.nextSign(raw, from) }

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
	for _, word := range sensitive {
		if len(raw) >= len(word) && strings.EqualFold(string(raw[:len(word)]), word) {
			return true
		}
	}
	return false
}
