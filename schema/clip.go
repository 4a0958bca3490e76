package schema

import "strings"

// Clip bounds a text that somebody else wrote, for a message or a description: of
// one of more than most bytes it keeps that many at the most, whole characters, and
// marks the cut with an ellipsis.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// clip bounds a text for a fault.
func clip(text string) string { return Clip(text, 64) }
