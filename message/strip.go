package message

import (
	"bytes"
	"cmp"
	"html"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Stripped is one piece that Strip removed from a text.
type Stripped struct {
	Kind string `json:"kind"` // StrippedWrapper or StrippedToolResult
	Text string `json:"text"` // the beginning of the piece
}

// The kinds of pieces that Strip removes.
const (
	StrippedWrapper    = "wrapper"     // a look-alike of the wrapper
	StrippedToolResult = "tool_result" // a tool result written as text (T6)
)

// removed replaces a removed piece. No look-alike contains it, so the texts on both sides
// cannot join to form one.
const removed = "\uFFFD"

// lookAlike matches, in a skeleton, forms of tool results (the first group) and of the wrapper,
// however complete: a block with its content, a single tag, a label in brackets or a JSON
// object with the rest of its line, and the wrapper's two brackets. Between the words any
// characters may occur that are neither letters, digits nor brackets, and the name of a tag may
// have other words around these. Tags and labels end with their line: searching for the end of
// the text from each of them would take far too long.
var lookAlike = func() *regexp.Regexp {
	const (
		between    = `[^a-z0-9<>\[\]\x{FFFD}]{0,8}`
		toolResult = `(?:tool|function)` + between + `(?:(?:calls?|use)` + between + `)?(?:result|response|output)`
		lead       = `[^a-z0-9/<>\[\]\x{FFFD}]{0,8}`
		tagName    = lead + `(?:[a-z0-9]{1,32}[^a-z0-9\s<>\[\]\x{FFFD}]{1,4}){0,2}` + toolResult
		block      = `<` + tagName + `[^>\n\x{FFFD}]*>(?s:.*?)(?:<` + lead + `/` + tagName + `[^>\n\x{FFFD}]*>|\z)`
		tag        = `<` + lead + `/?` + tagName + `[^>\n\x{FFFD}]*>?`
		label      = `\[` + lead + toolResult + `[^\]\n\x{FFFD}]*(?:\](?:\s*:[^\n\x{FFFD}]*)?)?`
		object     = `\{\s*"(?:type|role)"\s*:\s*"(?:tool|` + toolResult + `)"[^\n\x{FFFD}]*`
		wrapper    = `\[` + between + `msg` + between + `auth\s*(?::[^\]\n\x{FFFD}]*)?\]?`
	)
	return regexp.MustCompile(`(` + block + `|` + tag + `|` + label + `|` + object + `)|` + wrapper)
}()

// Strip removes every look-alike of the wrapper and of a tool result from a text. Authentic
// ones surround a message or have a position of their own, and never occur inside a text (T6).
// Case, white space, invisible characters, similar letters of other scripts, and escapes do not
// hide a look-alike. Strip also returns the pieces it removed.
func Strip(text string) (clean string, stripped []Stripped) {
	if plain(text) {
		return text, nil
	}
	clean, stripped = strip(text, false)
	if strings.ContainsFunc(clean, isTag) {
		var unseen []Stripped
		clean, unseen = strip(clean, true)
		stripped = append(stripped, unseen...)
	}
	return clean, stripped
}

// strip is Strip with one of the two ways to read tag characters.
func strip(text string, tags bool) (clean string, stripped []Stripped) {
	seen := skeletonOf(text, tags)
	if !seen.suspect() {
		return text, nil
	}
	var kept strings.Builder
	rest := 0
	for _, span := range lookAlike.FindAllSubmatchIndex(seen.text, -1) {
		from, to := seen.at[span[0]], seen.at[span[1]]
		kept.WriteString(text[rest:from])
		kept.WriteString(removed)
		rest = to
		kind := StrippedWrapper
		if span[2] >= 0 {
			kind = StrippedToolResult
		}
		stripped = append(stripped, Stripped{kind, clip(text[from:to])})
	}
	kept.WriteString(text[rest:])
	return kept.String(), stripped
}

// plain is a quick check that a text holds no look-alike: it is ASCII, and no character in it
// opens or escapes one.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c == '[' || c == '<' || c == '{' || c >= 0x80 || escapes(c) {
			return false
		}
	}
	return true
}

// suspect reports whether a look-alike is possible: each contains one of these words.
func (s *skeleton) suspect() bool {
	for _, word := range []string{"auth", "result", "response", "output", `"role"`} {
		if bytes.Contains(s.text, []byte(word)) {
			return true
		}
	}
	return false
}

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
				for from, r := range spelled {
					s.addParts(r, spelled[from:], i)
				}
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
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Mn, unicode.Me, unicode.Other_Default_Ignorable_Code_Point): // invisible
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

// unescape returns the text that the escape at the start of rest represents, and the length of
// the escape; 0 where there is none.
func unescape(rest string) (spelled string, length int) {
	if len(rest) <= 2 || rest[0] == '\\' && rest[1] != 'u' && rest[1] != 'x' { // a quick check
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
