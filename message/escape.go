package message

import (
	"cmp"
	"html"
	"regexp"
	"strconv"
)

// escape matches an escaped character: an HTML reference, a JSON escape or a URL escape, each
// possibly escaped repeatedly.
var escape = regexp.MustCompile(`^(?:&(?:amp;){0,8}(#?[0-9A-Za-z]{1,31};?)|` +
	`\\u\{([0-9A-Fa-f]{1,6})\}|\\u([0-9A-Fa-f]{4})|\\x([0-9A-Fa-f]{2})|%(?:25){0,8}([2-7][0-9A-Fa-f]))`)

// escapes reports whether an escape may begin with c.
func escapes(c byte) bool { return c == '&' || c == '\\' || c == '%' }

// mayOpen is a quick check whether rest, which begins with such a character, may begin with an
// escape.
func mayOpen(rest string) bool {
	return len(rest) > 2 && (rest[0] != '\\' || rest[1] == 'u' || rest[1] == 'x')
}

// unescape returns the text that the escape at the start of rest represents, and the length of
// the escape; 0 where there is none.
func unescape(rest string) (spelled string, length int) {
	if !mayOpen(rest) {
		return "", 0
	}
	m := escape.FindStringSubmatch(rest)
	if m == nil {
		return "", 0
	}
	if reference := "&" + m[1]; m[1] != "" {
		if spelled = html.UnescapeString(reference); spelled == reference {
			return "", 0
		}
		return spelled, len(m[0])
	}
	code, err := strconv.ParseUint(cmp.Or(m[2], m[3], m[4], m[5]), 16, 32)
	if err != nil {
		return "", 0
	}
	return string(rune(code)), len(m[0])
}
