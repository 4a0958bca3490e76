package aivs

import (
	"strconv"
	"strings"
)

// DefaultOutputLimit is the length to which outputs are truncated unless told
// otherwise (draft section 3.4): in characters, each of which is a byte, as outputs
// are written in ASCII.
const DefaultOutputLimit = 2000

// LeastOutputLimit is the shortest that truncated outputs can be.
const LeastOutputLimit = len(onlyTruncated)

const onlyTruncated = `{"truncated":true}`

// Outputs returns the outputs_json of a row from the outputs of an action: raw
// redacted as RedactRecord does, as one ASCII line, and truncated to limit
// bytes (LeastOutputLimit or more; 0: never). Truncated text stays valid JSON:
//
//	{"truncated":true,"bytes":N,"sha256":"…","head":"…"}
//
// where bytes and sha256 are of the redacted text, so that no digest of a secret
// enters a bundle; of less than some 130 bytes the first member alone is left. Absent outputs (nil) are "{}". redactions counts the values
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

// truncate shortens ASCII JSON text to limit bytes; where not even its digest fits,
// to the mark that it was.
func truncate(text []byte, limit int) []byte {
	if limit <= 0 || len(text) <= limit {
		return text
	}
	short := strconv.AppendInt([]byte(`{"truncated":true,"bytes":`), int64(len(text)), 10)
	short = append(append(short, `,"sha256":"`...), hexSHA256(text)...)
	short = append(short, `","head":`...)
	room := limit - len(short) - len(`}`)
	if room < len(`""`) {
		return []byte(onlyTruncated)
	}
	return append(appendString(short, head(text, room)), '}')
}

// head returns the longest beginning of text that takes at most limit bytes as a
// JSON string and ends between two characters; text is ASCII JSON on one line.
func head(text []byte, limit int) string {
	size, end := len(`""`), 0
	var buffer [32]byte
	for end < len(text) {
		next := end + characterSize(text[end:])
		size += len(appendString(buffer[:0], string(text[end:next]))) - len(`""`)
		if size > limit {
			break
		}
		end = next
	}
	return string(text[:end])
}

// characterSize is how many bytes of JSON text its first character takes: an escape,
// or the two that stand for one character beyond U+FFFF, are not to be cut.
func characterSize(text []byte) int {
	switch {
	case text[0] != '\\':
		return 1
	case text[1] != 'u':
		return len(`\n`)
	case text[2]|0x20 == 'd' && strings.IndexByte("89abAB", text[3]) >= 0:
		return len(`\ud83d\ude00`)
	default:
		return len(`\u00e9`)
	}
}
