package reference

import (
	"strings"
	"unicode/utf16"
)

// tokenKind is the kind of a token of a date text.
type tokenKind int

const (
	endOfDate tokenKind = iota
	numberToken
	symbolToken // one of : - + . )
	wordToken
	spaceToken
	otherToken // text that a date ignores, such as a comma or (a comment)
)

// The words with a meaning, by their first three letters.
const (
	garbageWord = iota
	monthWord
	halfDayWord
	zoneWord
	timeWord // the T between date and time
)

// dateToken is a token of a date text.
type dateToken struct {
	kind   tokenKind
	symbol rune
	number int // of at most nine digits after leading zeros; the rest is dropped
	length int // in characters
	word   int // monthWord and so on
	value  int // of a word: the month, 12 for pm, hours east of UTC
}

func (t dateToken) is(symbol rune) bool    { return t.kind == symbolToken && t.symbol == symbol }
func (t dateToken) sign() bool             { return t.is('+') || t.is('-') }
func (t dateToken) digits(length int) bool { return t.kind == numberToken && t.length == length }
func (t dateToken) keyword(word int) bool  { return t.kind == wordToken && t.word == word }

// zulu reports whether t is the zone Z.
func (t dateToken) zulu() bool { return t.keyword(zoneWord) && t.length == 1 }

var (
	monthNames = strings.Fields("jan feb mar apr may jun jul aug sep oct nov dec")
	zoneHours  = map[string]int{
		"z": 0, "ut": 0, "utc": 0, "gmt": 0, "edt": -4, "est": -5, "cdt": -5, "cst": -6, "mdt": -6, "mst": -7, "pdt": -7, "pst": -8,
	}
)

// scanDate splits a text into tokens.
func scanDate(s string) []dateToken {
	units := utf16.Encode([]rune(s))
	var tokens []dateToken
	for len(units) > 0 {
		token := scanToken(units)
		tokens = append(tokens, token)
		units = units[token.length:]
	}
	return tokens
}

func scanToken(units []uint16) dateToken {
	first := rune(units[0])
	switch {
	case isDigit(first):
		return scanNumber(units)
	case strings.ContainsRune(":-+.)", first):
		return dateToken{kind: symbolToken, symbol: first, length: 1}
	case inWord(first):
		return scanWord(units)
	case isSpace(first):
		return dateToken{kind: spaceToken, length: 1}
	case first == '(':
		return dateToken{kind: otherToken, length: comment(units)}
	}
	return dateToken{kind: otherToken, length: 1}
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

// inWord reports whether r belongs to a word: every character from A on does, except white
// space.
func inWord(r rune) bool { return r >= 'A' && !isSpace(r) }

// maxDigits is the number of significant digits that are read.
const maxDigits = 9

func scanNumber(units []uint16) dateToken {
	t := dateToken{kind: numberToken}
	significant := 0
	for t.length < len(units) && isDigit(rune(units[t.length])) {
		digit := int(units[t.length] - '0')
		if (significant > 0 || digit != 0) && significant < maxDigits {
			t.number = t.number*10 + digit
			significant++
		}
		t.length++
	}
	return t
}

func scanWord(units []uint16) dateToken {
	t := dateToken{kind: wordToken}
	for t.length < len(units) && inWord(rune(units[t.length])) {
		t.length++
	}
	var prefix strings.Builder
	for _, unit := range units[:min(t.length, 3)] {
		prefix.WriteRune(rune(unit | 0x20)) // lower case, for letters
	}
	t.word, t.value = meaning(prefix.String(), t.length)
	return t
}

// meaning looks up a word. Only months may be longer than their prefix.
func meaning(prefix string, length int) (word, value int) {
	for i, month := range monthNames {
		if prefix == month {
			return monthWord, i + 1
		}
	}
	if length > 3 {
		return garbageWord, 0
	}
	if hours, ok := zoneHours[prefix]; ok {
		return zoneWord, hours
	}
	switch prefix {
	case "am":
		return halfDayWord, 0
	case "pm":
		return halfDayWord, 12
	case "t":
		return timeWord, 0
	}
	return garbageWord, 0
}

// comment returns the length of a text in parentheses, up to the end if they are not closed.
func comment(units []uint16) int {
	depth := 0
	for i, unit := range units {
		switch unit {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			return i + 1
		}
	}
	return len(units)
}
