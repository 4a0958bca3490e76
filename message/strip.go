package message

import (
	"bytes"
	"regexp"
	"strings"
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

// Removed replaces a removed piece. No look-alike contains it, so the texts on both sides
// cannot join to form one.
const Removed = "\uFFFD"

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
