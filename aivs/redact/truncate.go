package redact

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/aivs/pyjson"
)

// DefaultOutputLimit is the default length to which outputs are truncated (draft section 3.4). It
// counts characters, each of which is a byte, since outputs are written in ASCII.
const DefaultOutputLimit = 2000

// LeastOutputLimit is the length of the shortest truncated outputs.
const LeastOutputLimit = len(onlyTruncated)

const onlyTruncated = `{"truncated":true}`

// IsTruncated reports whether a row's outputs_json has the form of truncated outputs.
func IsTruncated(outputs string) bool {
	return strings.HasPrefix(outputs, onlyTruncated[:len(onlyTruncated)-1])
}

// Outputs returns the outputs_json of a row from the outputs of an action: raw redacted as Record
// does, as one ASCII line, and truncated to limit bytes (LeastOutputLimit or more; 0: never).
// Truncated text stays valid JSON:
//
//	{"truncated":true,"bytes":N,"sha256":"…","head":"…"}
//
// bytes and sha256 are of the redacted text, so no digest of a secret enters a bundle. With a
// limit below some 130 bytes only the first member is left. Absent outputs (nil) are "{}". count
// is the number of values replaced.
func (r Rules) Outputs(raw []byte, limit int) (text string, count Count, err error) {
	hidden, count, err := r.Record(raw)
	if err != nil {
		return "", Count{}, err
	}
	return Truncate(hidden, limit), count, nil
}

// Truncate is Outputs for outputs that have nothing to hide (Clean).
func Truncate(raw []byte, limit int) string {
	if raw == nil {
		return "{}"
	}
	return string(truncate(pyjson.Line(raw), limit))
}

// CutOutputs returns the outputs_json of a row from outputs that another program truncated, so
// they are no longer JSON (draft section 3.4 allows it). The text is redacted as Text does and
// becomes the head in the form of Outputs. Its full length and its digest are not known.
func (r Rules) CutOutputs(text string, limit int) (outputs string, count Count) {
	hidden, count := r.Text(text)
	const start, end = `{"truncated":true,"head":`, `}`
	if limit > 0 {
		if limit < len(start)+len(`""`)+len(end) {
			return onlyTruncated, count
		}
		hidden = head([]byte(hidden), limit-len(start)-len(end), func(text []byte) int { _, size := utf8.DecodeRune(text); return size })
	}
	return string(append(pyjson.AppendString([]byte(start), hidden), end...)), count
}

// cutMark matches the mark that the draft's own generator appends to outputs it truncates.
var cutMark = regexp.MustCompile(`\.\.\. \[truncated [0-9]+ chars\]$`)

// IsCut reports whether a text is truncated JSON text, or ends with the truncation mark of the
// draft's own generator.
func IsCut(text string) bool {
	if cutMark.MatchString(text) {
		return true
	}
	decoder := jsontext.NewDecoder(strings.NewReader(text))
	_, err := decoder.ReadValue()
	return errors.Is(err, io.ErrUnexpectedEOF)
}

// truncate shortens ASCII JSON text to limit bytes. Where the digest does not fit, only the mark
// that the text was truncated remains.
func truncate(text []byte, limit int) []byte {
	if limit <= 0 || len(text) <= limit {
		return text
	}
	short := fmt.Appendf(nil, `{"truncated":true,"bytes":%d,"sha256":"%x","head":`, len(text), sha256.Sum256(text))
	room := limit - len(short) - len(`}`)
	if room < len(`""`) {
		return []byte(onlyTruncated)
	}
	return append(pyjson.AppendString(short, head(text, room, characterSize)), '}')
}

// head returns the longest prefix of text that takes at most limit bytes as a JSON string and
// ends between two characters. sizeOf returns the size of the first character of a text.
func head(text []byte, limit int, sizeOf func([]byte) int) string {
	size, end := len(`""`), 0
	var buffer [32]byte
	for end < len(text) {
		next := end + sizeOf(text[end:])
		size += len(pyjson.AppendString(buffer[:0], string(text[end:next]))) - len(`""`)
		if size > limit {
			break
		}
		end = next
	}
	return string(text[:end])
}

// characterSize returns the size in bytes of the first character of ASCII JSON text. An escape
// must not be split, nor the two escapes of one character beyond U+FFFF.
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
