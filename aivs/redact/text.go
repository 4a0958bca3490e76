package redact

import (
	"bytes"
	"math/bits"
	"regexp"
	"slices"
	"strings"
)

// maxTexts is how many levels of nested strings are searched. Deeper text is hidden whole if it
// could contain a sensitive name. Each level doubles the backslashes of the text, so more levels
// would make the output much larger than the input.
const maxTexts = 6

// maxRounds is how often the optional rules search one text. A replacement by one rule may reveal
// a value to another rule. A text that still changes after the last round is hidden whole.
const maxRounds = 4

// redactText redacts the JSON in a text that is nested in texts strings: the whole text, or
// members surrounded by any other text, truncated or damaged. It also applies the optional rules.
func (r Rules) redactText(text []byte, within scope, texts int) (hidden []byte, total Count) {
	for range maxRounds {
		if !r.mayApply(text) {
			return text, total
		}
		if bytes.IndexByte(text, '"') >= 0 || obscured.Match(text) {
			if texts > maxTexts {
				return []byte(Mark), Count{Draft: 1}
			}
			if whole, count, err := r.redact(text, within, texts); err == nil {
				total.Add(count)
				return whole, total
			}
		}
		if NoRules.mayApply(text) {
			if obscured.Match(text) {
				total.Draft++
				return []byte(Mark), total
			}
			var n int
			text, n = redactLoose(text, within)
			total.Draft += n
		}
		before := total.Optional
		if r&formRules != 0 {
			var n int
			text, n = r.redactForms(text)
			total.Optional += n
		}
		if r.has(RuleBase64) {
			var n int
			text, n = r.redactEncoded(text, within, texts)
			total.Optional += n
		}
		if total.Optional == before {
			return text, total
		}
	}
	return []byte(Mark), Count{Optional: 1}
}

// obscured matches text, not itself JSON, that writes JSON's own characters or the letters of a
// name as escapes. Such text is not decoded: it is hidden whole.
var obscured = regexp.MustCompile(`(?i)\\u(00(09|0a|0d|20|22|2c|3a|5b|5c|5d|5f|7b|7d|4[1-9a-f]|5[0-9a]|6[1-9a-f]|7[0-9a])|017f|0130|212a)`)

// loose walks text that is not JSON as a whole but may contain members of objects: quoted names
// followed by a colon. It requires no more of JSON's grammar, so no text around a member can hide
// it.
type loose struct {
	text   []byte
	out    []byte // text[:copied], redacted
	copied int
	count  int
	inputs int // the draft's substrings apply up to this index
}

func redactLoose(text []byte, within scope) ([]byte, int) {
	l := loose{text: text}
	if within == inInputs {
		l.inputs = len(text)
	}
	for at := 0; ; {
		opening, found := nextQuote(text, at, anyLevel)
		if !found {
			return append(l.out, text[l.copied:]...), l.count
		}
		at = l.member(opening)
	}
}

// member redacts the member whose name begins at the quote, if there is one. It returns where to
// continue.
func (l *loose) member(opening quote) int {
	closing, found := nextQuote(l.text, opening.end, opening.level)
	if !found {
		return opening.end
	}
	colon := skipSpace(l.text, closing.end)
	if colon == len(l.text) || l.text[colon] != ':' {
		return opening.end
	}
	within, name := elsewhere, string(l.text[opening.end:closing.start])
	if opening.start < l.inputs {
		within = inInputs
	}
	start := skipSpace(l.text, colon+1)
	if !within.hides(name) {
		if within == elsewhere && within.below(name) == inInputs {
			l.inputs = valueEnd(l.text, start, opening.level)
		}
		return opening.end
	}
	end := valueEnd(l.text, start, opening.level)
	l.hide(opening, name, start, end)
	if l.text[end-1] == '"' {
		return quoteAt(l.text, end-1, start).start // another name may begin here
	}
	return end
}

// hide replaces the value text[start:end] of a member. It also replaces the member's name if that
// contains quotes, since such a name may itself contain a member.
func (l *loose) hide(opening quote, name string, start, end int) {
	mark := l.text[opening.start:opening.end]
	hidden, count := slices.Concat(mark, []byte(Mark), mark), 1
	if strings.Contains(name, `"`) {
		start, hidden, count = max(opening.start, l.copied), slices.Concat(hidden, []byte(":"), hidden), 2
	} else if start == end || bytes.Equal(l.text[start:end], hidden) {
		return
	}
	l.out = append(append(l.out, l.text[l.copied:start]...), hidden...)
	l.copied = end
	l.count += count
}

// valueEnd returns the end of the value that begins at text[at] in a string of that level: after
// the string, the object or the array, or at the delimiter that ends any other value. It never
// exceeds the end of the enclosing string.
func valueEnd(text []byte, at, level int) int {
	begin, open := at, 0
	for at < len(text) {
		switch c := text[at]; {
		case c == '"':
			q := quoteAt(text, at, begin)
			closing, found := nextQuote(text, q.end, q.level)
			switch {
			case q.level < level || open == 0 && q.start > begin:
				return trimmed(text, begin, q.start)
			case !found:
				return len(text)
			case closing.level < level:
				return closing.start
			case open == 0:
				return closing.end
			}
			at = closing.end
			continue
		case c == '{' || c == '[':
			open++
		case open > 0 && (c == '}' || c == ']'):
			if open--; open == 0 {
				return at + 1
			}
		case open == 0 && strings.IndexByte(",}]\r\n", c) >= 0:
			return trimmed(text, begin, at)
		}
		at++
	}
	return at
}

// trimmed returns end without the blanks before it.
func trimmed(text []byte, begin, end int) int {
	return begin + len(bytes.TrimRight(text[begin:end], " \t"))
}

// anyLevel is a level that includes every quote.
const anyLevel = 64

// quote is a quotation mark with its backslashes: none at level 0, one in a string (level 1),
// three in a string within a string (level 2).
type quote struct{ start, end, level int }

// quoteAt returns the quote whose mark is text[at]. Its backslashes begin at from at the
// earliest. Pairs of backslashes belong to the text before the quote: the level is the number of
// trailing ones in the binary form of their count.
func quoteAt(text []byte, at, from int) quote {
	backslashes := 0
	for at-backslashes > from && text[at-backslashes-1] == '\\' {
		backslashes++
	}
	level := bits.TrailingZeros(^uint(backslashes))
	return quote{start: at + 1 - 1<<level, end: at + 1, level: level}
}

// nextQuote returns the first quote after from whose level is at most deepest. From an opening
// quote on, this is its closing quote.
func nextQuote(text []byte, from, deepest int) (quote, bool) {
	for at := from; ; at++ {
		i := bytes.IndexByte(text[at:], '"')
		if i < 0 {
			return quote{}, false
		}
		at += i
		if q := quoteAt(text, at, from); q.level <= deepest {
			return q, true
		}
	}
}

// skipSpace returns the end of the white space at text[at], including escapes such as "\n" in a
// string.
func skipSpace(text []byte, at int) int {
	for {
		rest := bytes.TrimLeft(text[at:], " \t\r\n")
		at = len(text) - len(rest)
		escaped := bytes.TrimLeft(rest, `\`)
		if len(escaped) == 0 || len(escaped) == len(rest) || strings.IndexByte("nrt", escaped[0]) < 0 {
			return at
		}
		at = len(text) - len(escaped) + 1
	}
}
