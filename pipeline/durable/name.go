package durable

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxReadable is how many bytes of the original text SafeName keeps.
const maxReadable = 48

// SafeName makes a file name from any text: a readable beginning (letters, digits, "_" and "-";
// everything else becomes "_"), "-", and 16 hexadecimal digits of the text's SHA-256, which
// distinguish texts that look alike. The name never contains a dot or a slash and never begins
// with "-". It cannot be reversed, so a record must contain the text itself.
func SafeName(text string) string {
	sum := sha256.Sum256([]byte(text))
	readable := strings.Map(safe, text[:min(len(text), maxReadable)])
	readable = strings.TrimLeft(readable, "-")
	if readable == "" {
		readable = "_"
	}
	return readable + "-" + hex.EncodeToString(sum[:8])
}

func safe(r rune) rune {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
		return r
	default:
		return '_'
	}
}
