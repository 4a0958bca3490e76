package aivs

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// appendString appends s as an ASCII JSON string, byte for byte as Python's json.dumps writes it.
// The caller must have refused invalid UTF-8.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	plain := 0 // s[plain:i] needs no escape
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c < 0x7f && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[plain:i]...)
		r, size := utf8.DecodeRuneInString(s[i:])
		dst = appendEscaped(dst, r)
		i += size
		plain = i
	}
	return append(append(dst, s[plain:]...), '"')
}

// appendEscaped appends the JSON escape of r.
func appendEscaped(dst []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(dst, '\\', byte(r))
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	if r > 0xFFFF {
		high, low := utf16.EncodeRune(r)
		return appendUnicode(appendUnicode(dst, high), low)
	}
	return appendUnicode(dst, r)
}

func appendUnicode(dst []byte, r rune) []byte {
	return append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}

// isLine reports whether Line would return raw unchanged.
func isLine(raw []byte) bool {
	const one, top = 0x0101010101010101, 0x8080808080808080 // the value in each of eight bytes
	rest := raw
	for ; len(rest) >= 8; rest = rest[8:] {
		if eight := binary.LittleEndian.Uint64(rest); (eight|(eight+one))&top != 0 {
			return false
		}
	}
	for _, c := range rest {
		if c >= 0x7f {
			return false
		}
	}
	return bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0
}

// Line returns a valid JSON value as one line of ASCII. Characters above '~' become \u escapes
// (some readers split lines at U+0085, U+2028 and U+2029). Line breaks, which JSON allows only
// between tokens, are removed. All other bytes stay. Line returns raw itself when nothing
// changes.
func Line(raw []byte) []byte {
	if isLine(raw) {
		return raw
	}
	line := make([]byte, 0, len(raw)+len(raw)/4)
	for i := 0; i < len(raw); {
		if c := raw[i]; c < 0x7f {
			if c != '\n' && c != '\r' {
				line = append(line, c)
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(raw[i:])
		line = appendEscaped(line, r)
		i += size
	}
	return line
}
