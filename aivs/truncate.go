package aivs

import "strconv"

// DefaultOutputLimit is the length in bytes to which outputs are truncated
// unless told otherwise (draft section 3.4).
const DefaultOutputLimit = 2000

// Outputs returns the outputs_json of a row from the outputs of an action: raw
// redacted as RedactRecord does, as one ASCII line, and truncated to limit
// bytes (0: never). Truncated text stays valid JSON:
//
//	{"truncated":true,"bytes":N,"sha256":"…","head":"…"}
//
// where bytes and sha256 are of the redacted text, so that no digest of a secret
// enters a bundle. Absent outputs (nil) are "{}". redactions counts the values
// replaced.
func Outputs(raw []byte, limit int) (text string, redactions int, err error) {
	if raw == nil {
		return "{}", 0, nil
	}
	hidden, redactions, err := RedactRecord(raw)
	if err != nil {
		return "", 0, err
	}
	return string(truncate(Line(hidden), limit)), redactions, nil
}

// truncate shortens ASCII JSON text to limit bytes, or to the digest alone where
// not even that fits.
func truncate(text []byte, limit int) []byte {
	if limit <= 0 || len(text) <= limit {
		return text
	}
	short := strconv.AppendInt([]byte(`{"truncated":true,"bytes":`), int64(len(text)), 10)
	short = append(append(short, `,"sha256":"`...), hexSHA256(text)...)
	short = append(short, `","head":`...)
	return append(appendString(short, head(text, limit-len(short)-len(`}`))), '}')
}

// head returns the longest beginning of text that takes at most limit bytes as a
// JSON string; text is ASCII on one line.
func head(text []byte, limit int) string {
	size, end := len(`""`), 0
	for end < len(text) {
		if size++; text[end] == '"' || text[end] == '\\' || text[end] == '\t' {
			size++
		}
		if size > limit {
			break
		}
		end++
	}
	return string(text[:end])
}
