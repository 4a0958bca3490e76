// Package pyjson writes JSON text byte for byte as Python's json.dumps does: ASCII strings, floats
// with a point or an exponent, values on one line.
//
// The draft's row hash and every verifier of its logs use this form, so aivs writes rows in it and
// aivs/redact writes what it replaces. It owns the form only; it parses nothing.
//
// Invariants: what it writes is ASCII without line breaks. The form of a value never changes,
// because hashes cover it.
package pyjson

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString appends s as an ASCII JSON string, byte for byte as Python's json.dumps writes it.
// The caller must have refused invalid UTF-8.
func AppendString(dst []byte, s string) []byte {
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

// AppendFloat appends f, which must be finite: the shortest decimal that parses back to f, in
// exponent form below 1e-4 and from 1e16 on, otherwise with a decimal point.
func AppendFloat(dst []byte, f float64) []byte {
	if abs := math.Abs(f); abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	if !bytes.ContainsRune(dst[start:], '.') {
		dst = append(dst, ".0"...)
	}
	return dst
}
