package report

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
)

// The longest texts of a bundle that the page shows, in characters.
const (
	longText  = 2000
	shortText = 300
)

const (
	zeroWidthJoiner = '\u200d'
	brailleBlank    = '\u2800'
)

// invisible are letters and marks that show nothing.
var invisible = []*unicode.RangeTable{unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector}

// mostMarks is how many marks may stand on one letter. More of them could cover other text.
const mostMarks = 4

// clean returns a text of a bundle with every character that could change how the page is shown
// (controls, marks of the direction of writing, piles of marks), or that nobody sees, as its code.
// It cuts a text that is too long, and says so.
func clean(text string, most int) string {
	var b strings.Builder
	written, marks, before := 0, 0, rune(0)
	for _, r := range strings.ToValidUTF8(text, "\ufffd") {
		if written++; written > most {
			continue
		}
		if marks++; !unicode.In(r, unicode.Mn, unicode.Me) {
			marks = 0
		}
		if plain(r, before) && marks <= mostMarks {
			b.WriteRune(r)
		} else {
			b.WriteString(code(r))
		}
		before = r
	}
	if more := written - most; more > 0 {
		fmt.Fprintf(&b, " … (%s more; all of them are in the bundle)", counted(int64(more), "character"))
	}
	return b.String()
}

// plain reports whether a character is shown as it is, after the one before.
func plain(r, before rune) bool {
	switch {
	case r == '\n', r == '\t':
		return true
	case r == zeroWidthJoiner, unicode.In(r, unicode.Variation_Selector): // which emoji and some scripts are written with
		return unicode.In(before, unicode.So, unicode.Sk, unicode.Mn)
	}
	return unicode.IsGraphic(r) && r != brailleBlank && !unicode.In(r, invisible...)
}

// code returns the code of a character.
func code(r rune) string { return fmt.Sprintf("⟨U+%04X⟩", r) }

func short(text string) string { return unmixed(clean(text, shortText)) }

func long(text string) string { return clean(text, longText) }

// lookalikes are scripts with letters that look like Latin ones.
var lookalikes = []*unicode.RangeTable{unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee, unicode.Coptic, unicode.Lisu}

// unmixed returns a name with the letters of those scripts as codes in words that have Latin
// letters, too: a name that looks like another one is seen to be different.
func unmixed(name string) string {
	if strings.IndexFunc(name, func(r rune) bool { return unicode.In(r, lookalikes...) }) < 0 {
		return name
	}
	var b strings.Builder
	for len(name) > 0 {
		end := strings.IndexFunc(name, func(r rune) bool { return !unicode.IsLetter(r) })
		if end < 0 {
			end = len(name)
		}
		word := name[:end]
		latin := strings.IndexFunc(word, func(r rune) bool { return unicode.Is(unicode.Latin, r) }) >= 0
		for _, r := range word {
			if latin && unicode.In(r, lookalikes...) {
				b.WriteString(code(r))
			} else {
				b.WriteRune(r)
			}
		}
		rest := strings.TrimLeftFunc(name[end:], func(r rune) bool { return !unicode.IsLetter(r) })
		b.WriteString(name[end : len(name)-len(rest)])
		name = rest
	}
	return b.String()
}

// spelt returns a name with every character outside ASCII as its code, "" if it is shown like this
// anyway.
func spelt(name string) string {
	var b strings.Builder
	for i, r := range []rune(strings.ToValidUTF8(name, "\ufffd")) {
		if i == shortText {
			break
		}
		if r >= ' ' && r <= '~' {
			b.WriteRune(r)
		} else {
			b.WriteString(code(r))
		}
	}
	if strings.HasPrefix(short(name), b.String()) {
		return ""
	}
	return b.String()
}

// shorts returns a list of texts, with a last entry that counts those left out.
func shorts(texts []string) []string {
	const most = 40
	out := make([]string, 0, min(len(texts), most+1))
	for i, text := range texts {
		if i == most {
			return append(out, fmt.Sprintf("… and %d more", len(texts)-most))
		}
		out = append(out, short(text))
	}
	return out
}

// value returns JSON of a bundle for people: indented, texts without needless escapes. It returns ""
// for no value and for an empty object. JSON that is large or deep stays as it is: indenting it would
// multiply its size.
func value(raw []byte) string {
	const mostBytes = 1 << 20
	v := jsontext.Value(strings.TrimSpace(string(raw)))
	if len(v) == 0 || string(v) == "{}" || string(v) == "null" {
		return ""
	}
	if len(v) > mostBytes || deep(v) || v.Format(jsontext.WithIndent("  "), jsontext.SpaceAfterColon(true)) != nil {
		return long(string(raw))
	}
	return long(string(v))
}

// deep reports whether more than 32 objects and arrays are nested in one another.
func deep(v []byte) bool {
	in := jsontext.NewDecoder(bytes.NewReader(v))
	for {
		if _, err := in.ReadToken(); err != nil {
			return false
		}
		if in.StackDepth() > 32 {
			return true
		}
	}
}

// instant returns a time for people.
func instant(t time.Time) string {
	if t.IsZero() {
		return "unknown"
	}
	return t.UTC().Format("2006-01-02 15:04:05.999999 UTC")
}

// seconds returns the time of a row for people.
func seconds(unix float64) string {
	const year10000 = 253402300800
	if !(unix >= 0 && unix < year10000) {
		return "unknown"
	}
	return instant(time.UnixMicro(int64(math.Floor(unix*1e6 + 0.5))))
}

func counted(n int64, what string) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	if n == 1 {
		return text + " " + what
	}
	return text + " " + what + "s"
}
