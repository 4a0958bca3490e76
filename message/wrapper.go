package message

import (
	"errors"
	"regexp"
	"strings"
)

const (
	wrapperHead = "[MSG_AUTH:"
	wrapperTail = " [/MSG_AUTH]"
)

// Wrap returns the form in which a signed message is handed to a runtime:
// [MSG_AUTH:<64 hexadecimal digits>] text [/MSG_AUTH].
func Wrap(mac MAC, text string) string {
	return wrapperHead + mac.String() + "] " + text + wrapperTail
}

// ErrUnsigned says that the text is not wrapped.
var ErrUnsigned = errors.New("not a signed message: want [MSG_AUTH:<64 hexadecimal digits>] text [/MSG_AUTH]")

// Unwrap takes the wrapper off, exactly as Wrap puts it on. It is ErrUnsigned
// where there is none.
func Unwrap(wrapped string) (mac MAC, text string, err error) {
	rest, ok := strings.CutPrefix(wrapped, wrapperHead)
	if !ok || len(rest) < 2*len(mac) {
		return mac, "", ErrUnsigned
	}
	digits, rest := rest[:2*len(mac)], rest[2*len(mac):]
	rest, headed := strings.CutPrefix(rest, "] ")
	text, tailed := strings.CutSuffix(rest, wrapperTail)
	if mac, err = ParseMAC(digits); err != nil || !headed || !tailed {
		return MAC{}, "", ErrUnsigned
	}
	return mac, text, nil
}

// Stripped is one thing that Strip took out of a text.
type Stripped struct {
	Kind string // StrippedWrapper or StrippedToolResult
	Text string // its beginning
}

// What Strip takes out.
const (
	StrippedWrapper    = "wrapper"     // a look-alike of the wrapper
	StrippedToolResult = "tool_result" // a tool result written as text (T6)
)

// Removed stands where something was taken out. No look-alike contains it, so
// that what stood on both sides cannot join to form one.
const Removed = "\uFFFD"

// lookAlikes are the forms of wrapper and tool results, whatever their case,
// width of white space and completeness.
var lookAlikes = []struct {
	kind    string
	pattern *regexp.Regexp
}{
	{StrippedToolResult, regexp.MustCompile(`(?is)<\s*tool[_\s-]?results?\b[^>]*>.*?(<\s*/\s*tool[_\s-]?results?\s*>|\z)`)},
	{StrippedToolResult, regexp.MustCompile(`(?is)<\s*/\s*tool[_\s-]?results?\s*>`)},
	{StrippedToolResult, regexp.MustCompile(`(?i)\[\s*tool[_\s-]*results?(\s+(for|of|from))?[^\]\n]*\]\s*:?[^\n]*`)},
	{StrippedWrapper, regexp.MustCompile(`(?i)\[\s*/?\s*MSG[_\s-]*AUTH\s*(:[^\]\n]*)?\]?`)},
}

// Strip takes every look-alike of the wrapper and of a tool result out of a text:
// authentic ones stand around a message or in a position of their own, never in
// a text (T6). It returns what it took out, in the order of the forms.
func Strip(text string) (clean string, stripped []Stripped) {
	for _, form := range lookAlikes {
		text = form.pattern.ReplaceAllStringFunc(text, func(found string) string {
			stripped = append(stripped, Stripped{form.kind, clip(found)})
			return Removed
		})
	}
	return text, stripped
}
