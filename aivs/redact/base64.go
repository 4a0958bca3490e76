package redact

import (
	"bytes"
	"encoding/base64"
	"strings"
)

// leastEncoded is the length of the shortest base64 of JSON that can contain a secret.
const leastEncoded = 12

// encodedJSON is a stretch of text that may be base64 of JSON.
type encodedJSON struct{ start, end, padded int } // padded: its end including the padding

// base64Char holds for each byte whether it is a base64 character in either alphabet.
var base64Char = func() (table [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_") {
		table[c] = true
	}
	return table
}()

// beginsEncoded reports whether a text of three bytes or more begins like the base64 of a JSON
// object or array: "{" or "[", and then a quotation mark, white space or another "{" or "[". Both
// alphabets encode these the same.
func beginsEncoded(text []byte) bool {
	var b [2]byte
	_, err := base64.RawStdEncoding.Decode(b[:], text[:3])
	return err == nil && (b[0] == '{' || b[0] == '[') && bytes.IndexByte([]byte("\" \t\r\n{["), b[1]) >= 0
}

// nextEncoded returns the first stretch after from that may be base64 of JSON. It checks only one
// byte in leastEncoded: every stretch that is long enough contains such a byte.
func nextEncoded(text []byte, from int) (e encodedJSON, found bool) {
	for i := from + leastEncoded - 1; i < len(text); i = e.end + leastEncoded {
		e.start, e.end = i, i
		for e.start > from && base64Char[text[e.start-1]] {
			e.start--
		}
		for e.end < len(text) && base64Char[text[e.end]] {
			e.end++
		}
		// A path may precede it: the separators of path elements are base64 characters, too.
		for e.end-e.start >= leastEncoded {
			if beginsEncoded(text[e.start:e.end]) {
				for e.padded = e.end; e.padded < min(len(text), e.end+2) && text[e.padded] == '='; {
					e.padded++
				}
				return e, true
			}
			separator := bytes.IndexAny(text[e.start:e.end], "/-_+")
			if separator < 0 {
				break
			}
			e.start += separator + 1
		}
	}
	return e, false
}

// redactEncoded redacts the JSON inside the base64 stretches of a text (RuleBase64).
func (r Rules) redactEncoded(text []byte, within scope, texts int) (out []byte, count int) {
	copied := 0
	for at := 0; ; {
		e, found := nextEncoded(text, at)
		if !found {
			return append(out, text[copied:]...), count
		}
		at = e.padded
		if hidden, n := r.encodeAgain(text[e.start:e.end], e.padded > e.end, within, texts+1); n > 0 {
			out = append(append(out, text[copied:e.start]...), hidden...)
			copied = e.padded
			count += n
		}
	}
}

// standardAlphabet converts base64url characters to the standard alphabet.
var standardAlphabet = strings.NewReplacer("-", "+", "_", "/")

// encodeAgain decodes a base64 stretch, redacts its JSON and encodes it in the same form. It
// returns how many values were replaced.
func (r Rules) encodeAgain(encoded []byte, padded bool, within scope, texts int) (again []byte, count int) {
	if texts > maxTexts {
		return []byte(Mark), 1
	}
	whole := encoded
	if len(whole)%4 == 1 {
		whole = whole[:len(whole)-1] // the text was truncated here
	}
	decoded, err := base64.RawStdEncoding.DecodeString(standardAlphabet.Replace(string(whole)))
	if err != nil {
		return nil, 0
	}
	hidden, inner := r.redactText(decoded, within, texts)
	if inner.Sum() == 0 {
		return nil, 0
	}
	encoding := base64.StdEncoding
	if bytes.ContainsAny(encoded, "-_") {
		encoding = base64.URLEncoding
	} else if len(encoded)%4 == 0 {
		padded = true // this text needed no padding; this alphabet usually has it
	}
	if !padded {
		encoding = encoding.WithPadding(base64.NoPadding)
	}
	return encoding.AppendEncode(nil, hidden), inner.Sum()
}
