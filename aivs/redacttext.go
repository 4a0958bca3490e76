package aivs

import (
	"bytes"
	"math/bits"
	"regexp"
	"slices"
	"strings"
)

// maxTexts is how many strings, each the text of another, are looked into. What lies
// deeper is hidden whole where it could hold a sensitive name. Each doubles the
// backslashes of what is written: more of them would make much out of little.
const maxTexts = 6

// maxRounds is how often the further rules look at one text. What one hides may be what
// kept another from seeing a value; a text that is not settled by then is hidden whole.
const maxRounds = 4

// redactText redacts what in a text is JSON, as deep as texts strings: the whole of
// it, or members with any other text around them, cut off or spoilt; and what is in it
// by the further rules.
func (r Rules) redactText(text []byte, within scope, texts int) (hidden []byte, total Count) {
	for range maxRounds {
		if !r.mayApply(text) {
			return text, total
		}
		quoted := bytes.IndexByte(text, '"') >= 0 || obscured.Match(text)
		if quoted && texts > maxTexts {
			return []byte(redactedText), Count{Draft: 1}
		}
		if quoted {
			if whole, count, err := r.redact(text, within, texts); err == nil {
				total.Add(count)
				return whole, total
			}
		}
		out, count := r.redactOnce(text, within, texts)
		total.Add(count)
		if text = out; count.Optional == 0 {
			return text, total
		}
	}
	return []byte(redactedText), Count{Optional: 1}
}

// redactOnce redacts a text that is not JSON as a whole.
func (r Rules) redactOnce(text []byte, within scope, texts int) (out []byte, count Count) {
	if mayHold(text) {
		if obscured.Match(text) {
			return []byte(redactedText), Count{Draft: 1}
		}
		text, count.Draft = redactLoose(text, within)
	}
	if r&formRules != 0 {
		var n int
		text, n = r.redactForms(text)
		count.Optional += n
	}
	if r.has(RuleBase64) {
		var n int
		text, n = r.redactEncoded(text, within, texts)
		count.Optional += n
	}
	return text, count
}

// redactedText is what redacted stands for.
const redactedText = "[REDACTED]"

// obscured is text, not itself JSON, that spells JSON's own characters or the
// letters of a name as escapes. What it says is not followed: it is hidden whole.
var obscured = regexp.MustCompile(`(?i)\\u(00(09|0a|0d|20|22|2c|3a|5b|5c|5d|5f|7b|7d|4[1-9a-f]|5[0-9a]|6[1-9a-f]|7[0-9a])|017f|0130|212a)`)

// loose walks text that is not JSON as a whole, but may have members of objects in
// it: quoted names with a colon behind. It needs no more of JSON's grammar than that,
// so that nothing around a member keeps it from being seen.
type loose struct {
	text   []byte
	out    []byte // text[:copied], redacted
	copied int
	count  int
	inputs int // the draft's substrings hold up to here
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

// member redacts the member whose name begins at the quote, if one does, and returns
// where to look on.
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
		return quoteAt(l.text, end-1, start).start // the text may be such that a name begins here
	}
	return end
}

// hide replaces the value text[start:end] of a member, and its name with it where
// that has quotes, and so perhaps a member, in it.
func (l *loose) hide(opening quote, name string, start, end int) {
	mark := l.text[opening.start:opening.end]
	hidden, count := slices.Concat(mark, []byte(redactedText), mark), 1
	if strings.Contains(name, `"`) {
		start, hidden, count = max(opening.start, l.copied), slices.Concat(hidden, []byte(":"), hidden), 2
	} else if start == end || bytes.Equal(l.text[start:end], hidden) {
		return
	}
	l.out = append(append(l.out, l.text[l.copied:start]...), hidden...)
	l.copied = end
	l.count += count
}

// valueEnd returns where the value that begins at text[at], in a string of that level,
// ends: behind the string, the object or the array, or at what ends any other; at the
// latest where the string around it does.
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

// trimmed is end less the blanks before it.
func trimmed(text []byte, begin, end int) int {
	return begin + len(bytes.TrimRight(text[begin:end], " \t"))
}

// anyLevel is that of every quote.
const anyLevel = 64

// quote is a quotation mark with the backslashes that belong to it: none at level 0,
// one in a string of that (level 1), three in a string of such a string.
type quote struct{ start, end, level int }

// quoteAt returns the quote whose mark is text[at]; the backslashes are those behind
// from. Pairs of them belong to the text before the quote: what is left of their
// number, in binary, is as many ones at its end as the quote's level.
func quoteAt(text []byte, at, from int) quote {
	backslashes := 0
	for at-backslashes > from && text[at-backslashes-1] == '\\' {
		backslashes++
	}
	level := bits.TrailingZeros(^uint(backslashes))
	return quote{start: at + 1 - 1<<level, end: at + 1, level: level}
}

// nextQuote returns the first quote behind from whose level is at most deepest: from
// a quote on, the one that ends what it began.
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

// skipSpace returns where the white space at text[at] ends, such as is written "\n"
// in a string included.
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
