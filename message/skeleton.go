package message

import (
	"cmp"
	"html"
	"regexp"
	"strconv"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// skeleton is a text as a reader sees it: in lower case, without invisible characters, with
// escapes decoded, and with one form for characters that look alike. at[i] is the offset in the
// original that byte i of text comes from; the last element of at is the length of the
// original.
type skeleton struct {
	text []byte
	at   []int
	tags bool // read tag characters as the ASCII they encode: people do not see them, but models may
}

func skeletonOf(original string, tags bool) skeleton {
	s := skeleton{text: make([]byte, 0, len(original)), at: make([]int, 0, len(original)+1), tags: tags}
	for i := 0; i < len(original); {
		rest := original[i:]
		if escapes(rest[0]) {
			if spelled, length := unescape(rest); length > 0 {
				s.addAll(spelled, i)
				i += length
				continue
			}
		}
		r, length := utf8.DecodeRuneInString(rest)
		s.addParts(r, rest, i)
		i += length
	}
	s.at = append(s.at, len(original))
	return s
}

// addAll appends a text that comes from one place.
func (s *skeleton) addAll(text string, at int) {
	for i, r := range text {
		s.addParts(r, text[i:], at)
	}
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

// mostParts bounds the decomposition of a character. A character with a longer one represents a
// phrase and is added as it is.
const mostParts = 12 // bytes

// addParts appends the decomposition of r, the first character of rest.
func (s *skeleton) addParts(r rune, rest string, at int) {
	if r < utf8.RuneSelf {
		s.addASCII(byte(r), at)
		return
	}
	parts := norm.NFKD.PropertiesString(rest).Decomposition()
	if parts == nil || len(parts) > mostParts {
		s.add(r, at)
		return
	}
	for _, part := range string(parts) {
		s.add(part, at)
	}
}

// firstTag is the tag character for ASCII 0.
const firstTag = 0xE0000

// isTag reports whether a character is the tag character of a printable ASCII character.
func isTag(r rune) bool { return r >= firstTag+' ' && r <= firstTag+'~' }

// add appends the character that r looks like.
func (s *skeleton) add(r rune, at int) {
	switch {
	case r < utf8.RuneSelf:
		s.addASCII(byte(r), at)
	case s.tags && isTag(r):
		s.addASCII(byte(r-firstTag), at)
	case r == '\uFFFD': // also replaces invalid UTF-8: it stays, as a separator
		s.write(r, at)
	case r == '\u2028' || r == '\u2029' || r == '\u0085':
		s.write('\n', at)
	case unicode.IsSpace(r):
		s.write(' ', at)
	case invisible(r):
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

// looksLike maps lower-case characters to the ASCII that they, or their capitals, resemble, as
// far as look-alikes need it. Characters that compatibility decomposition maps (full-width,
// mathematical, circled letters) need no entry.
var looksLike = func() map[rune]rune {
	table := map[rune]rune{}
	for ascii, others := range map[rune]string{
		'a': "аαɑᴀ⍺ᎪꓮᗅⲀ", 'c': "сϲᴄᏟꓚⲤ", 'e': "еεᴇҽ℮ᎬꓰⴹⲈ", 'f': "ꜰϜƒքꓝᖴ", 'g': "ɡɢցԌɠᏀꓖ", 'h': "һнηʜհᎻꓧⲎ",
		'i': "іιıɪɩꙇᎥꓲⲒ", 'l': "ӏӀʟǀłⵏ׀∣ᏞꓡᒪⳐ", 'm': "мμᴍᎷꓟᗰⲘ", 'n': "пνɴոռꓠⲚ", 'o': "оοσᴏօøⵔ〇০०ჿഠꓳⲞ", 'p': "рρᴘ⍴ᏢꓑᑭⲢ",
		'r': "гʀꭇᎡᏒꓣᖇⲄ", 's': "ѕꜱʂƽտᏚꓢ", 't': "тτᴛŧ⊤⟙ᎢꓔⲦ", 'u': "υᴜսʋʉ∪⋃ꓴᑌ",
		'[': "【〔〖〘⟦❲〚⁅⟬⦋⌈⌊⎡⎣", ']': "】〕〗〙⟧❳〛⁆⟭⦌⌉⌋⎤⎦", '<': "‹〈⟨❮❬˂«《≪⧼≺⋖ᐸ", '>': "›〉⟩❯❭˃»》≫⧽≻⋗ᐳ", '/': "⁄∕⧸╱⟋", ':': "꞉∶ːː׃",
	} {
		for _, other := range others {
			table[unicode.ToLower(other)] = ascii
		}
	}
	return table
}()

// escape matches an escaped character: an HTML reference, a JSON escape or a URL escape, each
// possibly escaped repeatedly.
var escape = regexp.MustCompile(`^(?:&(?:amp;){0,8}(#?[0-9A-Za-z]{1,31};?)|` +
	`\\u\{([0-9A-Fa-f]{1,6})\}|\\u([0-9A-Fa-f]{4})|\\x([0-9A-Fa-f]{2})|%(?:25){0,8}([2-7][0-9A-Fa-f]))`)

// escapes reports whether an escape may begin with c.
func escapes(c byte) bool { return c == '&' || c == '\\' || c == '%' }

// mayOpen is a quick check whether rest, which begins with such a character, may begin with an
// escape.
func mayOpen(rest string) bool {
	return len(rest) > 2 && (rest[0] != '\\' || rest[1] == 'u' || rest[1] == 'x')
}

// unescape returns the text that the escape at the start of rest represents, and the length of
// the escape; 0 where there is none.
func unescape(rest string) (spelled string, length int) {
	if !mayOpen(rest) {
		return "", 0
	}
	m := escape.FindStringSubmatch(rest)
	if m == nil {
		return "", 0
	}
	if reference := "&" + m[1]; m[1] != "" {
		if spelled = html.UnescapeString(reference); spelled == reference {
			return "", 0
		}
		return spelled, len(m[0])
	}
	code, err := strconv.ParseUint(cmp.Or(m[2], m[3], m[4], m[5]), 16, 32)
	if err != nil {
		return "", 0
	}
	return string(rune(code)), len(m[0])
}
