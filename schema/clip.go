package schema

import "strings"

// Clip bounds a text of foreign origin for a message or a description. Of a text longer than
// most bytes it keeps at most that many, in whole characters, and marks the cut with an
// ellipsis.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// clip bounds a text for the message of a fault.
func clip(text string) string { return Clip(text, 64) }
