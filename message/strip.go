package message

import (
	"bytes"
	"regexp"
	"strings"
)

// Stripped is one thing that Strip took out of a text.
type Stripped struct {
	Kind string `json:"kind"` // StrippedWrapper or StrippedToolResult
	Text string `json:"text"` // its beginning
}

// What Strip takes out.
const (
	StrippedWrapper    = "wrapper"     // a look-alike of the wrapper
	StrippedToolResult = "tool_result" // a tool result written as text (T6)
)

// Removed stands where something was taken out. No look-alike contains it, so
// that what stood on both sides cannot join to form one.
const Removed = "\uFFFD"

// lookAlike finds, in a skeleton, the forms of tool results (the first group) and
// of the wrapper, however complete: a block with all that it holds, a tag alone, a
// label in brackets with the rest of its line, and the wrapper's two brackets. Tags
// and labels end with their line: a search for the end of the text from each of
// them would take for ever.
var lookAlike = func() *regexp.Regexp {
	const (
		toolResult = `(?:tool|function)[_\s-]*(?:calls?|use)?[_\s-]*(?:result|response|output)s?`
		block      = `<\s*` + toolResult + `\b[^>\n\x{FFFD}]*>(?s:.*?)(?:<\s*/\s*` + toolResult + `\s*>|\z)`
		tag        = `<\s*/?\s*` + toolResult + `\b[^>\n\x{FFFD}]*>?`
		label      = `\[\s*` + toolResult + `\b[^\]\n\x{FFFD}]*(?:\](?:\s*:[^\n\x{FFFD}]*)?)?`
		wrapper    = `\[\s*/?\s*msg[_\s-]*auth\s*(?::[^\]\n\x{FFFD}]*)?\]?`
	)
	return regexp.MustCompile(`(` + block + `|` + tag + `|` + label + `)|` + wrapper)
}()

// Strip takes every look-alike of the wrapper and of a tool result out of a text:
// authentic ones stand around a message or in a position of their own, never in
// a text (T6). Case, white space, invisible characters and letters of other
// scripts that look the same do not hide one. It returns what it took out, in
// order.
func Strip(text string) (clean string, stripped []Stripped) {
	if plain(text) {
		return text, nil
	}
	seen := skeletonOf(text)
	if !seen.suspect() {
		return text, nil
	}
	found := lookAlike.FindAllSubmatchIndex(seen.text, -1)
	var kept strings.Builder
	rest := 0
	for _, span := range found {
		from, to := seen.at[span[0]], seen.at[span[1]]
		kept.WriteString(text[rest:from])
		kept.WriteString(Removed)
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

// plain tells at a glance that a text holds no look-alike: it is ASCII, and
// nothing opens one.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c == '[' || c == '<' || c >= 0x80 {
			return false
		}
	}
	return true
}

// suspect tells whether a look-alike may be there: each has one of these words.
func (s *skeleton) suspect() bool {
	for _, word := range []string{"auth", "result", "response", "output"} {
		if bytes.Contains(s.text, []byte(word)) {
			return true
		}
	}
	return false
}
