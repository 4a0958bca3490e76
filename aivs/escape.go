package aivs

import (
	"fmt"
	"net/url"
	"strings"
)

var encodeHashed = strings.NewReplacer("%", "%25", ":", "%3A")

// Encode escapes s for a hashed field. The row hash joins its fields with colons, so a colon
// inside a field would let two rows share one hash. Encode therefore percent-encodes '%' and ':'.
func Encode(s string) string {
	if !strings.ContainsAny(s, "%:") {
		return s
	}
	return encodeHashed.Replace(s)
}

// Decode reverses Encode.
func Decode(s string) (string, error) {
	decoded, err := url.PathUnescape(s)
	if err != nil {
		return "", fmt.Errorf("decode hashed field: %w", err)
	}
	return decoded, nil
}
