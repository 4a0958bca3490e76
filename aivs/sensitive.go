package aivs

import (
	"bytes"
	"strings"
	"unicode"
)

// sensitive are the substrings of draft section 3.3, verbatim.
var sensitive = [...]string{"password", "token", "api_key", "secret", "key", "authorization",
	"bearer", "credential", "passwd", "passphrase"}

// holdsSensitive is the draft's rule: name contains one of the substrings, in
// whatever case.
func holdsSensitive(name string) bool {
	lower := fold(name)
	for _, word := range sensitive {
		if strings.Contains(lower, word) {
			return true
		}
	}
	return false
}

// fold lowers a name as a reader who does not mind case would: the long s is an s.
func fold(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), longS, "s")
}

// longS is a small letter whose capital is S.
const longS = "\u017f"

// namesSensitive is the rule outside inputs: one of the words stands in name as
// a whole word, or (api_key) as whole words, with any separator or none. Words
// end where letters do, and where camel case changes.
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

// wordEnds tells whether a word boundary lies before runes[i].
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
	if word == "apikey" { // api_key without its separator; with it, key is a word of its own
		return true
	}
	for _, s := range sensitive {
		if word == s {
			return true
		}
	}
	return false
}

// mayHold tells whether raw could have a sensitive name at all, fast and erring
// on the side of yes: it looks for the substrings anywhere, and gives up on
// escaped characters and on the other letters that fold to an ASCII one: the sign
// of the kelvin, the I with a dot, the long s.
func mayHold(raw []byte) bool {
	var one, two uint8 // of the words whose first letter, or two, were just read
	for i, c := range raw {
		l := &letters[c]
		if two&l.third != 0 && startsSensitive(raw[i-2:]) {
			return true
		}
		one, two = l.first, one&l.second
	}
	for _, other := range [...]string{`\u`, "\u212a", "\u0130", longS} {
		if bytes.Contains(raw, []byte(other)) {
			return true
		}
	}
	return false
}

// letters tells of a byte which words have it as their first, second or third letter,
// a bit for each way to begin.
var letters = func() (table [256]struct{ first, second, third uint8 }) {
	beginnings := map[string]uint8{}
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
