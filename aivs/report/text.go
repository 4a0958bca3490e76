package report

import (
	"fmt"
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

const zeroWidthJoiner = '\u200d'

// clean returns a text of a bundle with every character that could change how the page is shown
// (controls, and marks of the direction of writing) as its code. It cuts a text that is too long,
// and says so.
func clean(text string, most int) string {
	var b strings.Builder
	written := 0
	text = strings.ToValidUTF8(text, "\ufffd")
	for _, r := range text {
		if written++; written > most {
			continue
		}
		switch {
		case r == '\n', r == '\t', r == zeroWidthJoiner: // which emoji are made with
			b.WriteRune(r)
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp):
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		default:
			b.WriteRune(r)
		}
	}
	if more := written - most; more > 0 {
		fmt.Fprintf(&b, " … (%s more; all of them are in the bundle)", counted(int64(more), "character"))
	}
	return b.String()
}

func short(text string) string { return clean(text, shortText) }

func long(text string) string { return clean(text, longText) }

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
// for no value and for an empty object.
func value(raw []byte) string {
	v := jsontext.Value(strings.TrimSpace(string(raw)))
	if len(v) == 0 || string(v) == "{}" || string(v) == "null" {
		return ""
	}
	if v.Format(jsontext.WithIndent("  "), jsontext.SpaceAfterColon(true)) != nil {
		return long(string(raw))
	}
	return long(string(v))
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
	return instant(time.UnixMicro(int64(unix * 1e6)))
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
