package message

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// skeleton is a text as a reader sees it: in lower case, without what is not
// seen, and with one form for characters that look alike. at[i] is where byte i
// of text came from; its last element is the original's length.
type skeleton struct {
	text []byte
	at   []int
}

func skeletonOf(original string) skeleton {
	s := skeleton{text: make([]byte, 0, len(original)), at: make([]int, 0, len(original)+1)}
	for i, r := range original {
		switch {
		case r < utf8.RuneSelf:
			s.addASCII(byte(r), i)
		case r == '\uFFFD': // also what is not UTF-8: it stays, as a wall
			s.write(r, i)
		default:
			s.addParts(r, original[i:], i)
		}
	}
	s.at = append(s.at, len(original))
	return s
}

func (s *skeleton) addASCII(c byte, at int) {
	switch {
	case c >= 'A' && c <= 'Z':
		c += 'a' - 'A'
	case c == '\t' || c == '\r' || c == '\v' || c == '\f':
		c = ' '
	case c < ' ' && c != '\n' || c == 0x7f:
		return
	}
	s.text, s.at = append(s.text, c), append(s.at, at)
}

// mostParts of a character are looked at: what has more stands for a phrase.
const mostParts = 12 // bytes

// addParts appends what the first character of rest, r, is composed of.
func (s *skeleton) addParts(r rune, rest string, at int) {
	parts := norm.NFKD.PropertiesString(rest).Decomposition()
	if parts == nil || len(parts) > mostParts {
		s.add(r, at)
		return
	}
	for _, part := range string(parts) {
		s.add(part, at)
	}
}

// add appends a character as it looks.
func (s *skeleton) add(r rune, at int) {
	switch {
	case r < utf8.RuneSelf:
		s.addASCII(byte(r), at)
	case r == '\u2028' || r == '\u2029' || r == '\u0085':
		s.write('\n', at)
	case unicode.IsSpace(r):
		s.write(' ', at)
	case invisible(r):
	case unicode.Is(unicode.Pd, r):
		s.write('-', at)
	default:
		r = unicode.ToLower(r)
		if alike, ok := looksLike[r]; ok {
			r = alike
		}
		s.write(r, at)
	}
}

func (s *skeleton) write(r rune, at int) {
	before := len(s.text)
	s.text = utf8.AppendRune(s.text, r)
	for range len(s.text) - before {
		s.at = append(s.at, at)
	}
}

func invisible(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Mn, unicode.Me, unicode.Other_Default_Ignorable_Code_Point)
}

// looksLike maps lower-case characters to the ASCII that they are taken for, as
// far as the words of look-alikes need it. What compatibility decomposition maps
// (full-width, mathematical, circled letters) needs no entry.
var looksLike = func() map[rune]rune {
	table := map[rune]rune{}
	for ascii, others := range map[rune]string{
		'a': "аαɑᴀ", 'c': "сϲᴄ", 'e': "еεᴇ", 'f': "ꜰ", 'g': "ɡɢ", 'h': "һнηʜ", 'i': "іιıɪ", 'l': "ӏӀʟǀ",
		'm': "мμᴍ", 'n': "пνɴ", 'o': "оοσᴏօ", 'p': "рρᴘ", 'r': "гʀ", 's': "ѕꜱʂ", 't': "тτᴛ", 'u': "υᴜս", 'x': "х",
		'[': "【〔⟦❲〚⁅", ']': "】〕⟧❳〛⁆", '<': "‹〈⟨❮❬˂", '>': "›〉⟩❯❭˃", '/': "⁄∕⧸╱", ':': "꞉∶ːː׃", '_': "‿⁀",
	} {
		for _, other := range others {
			table[other] = ascii
		}
	}
	return table
}()
