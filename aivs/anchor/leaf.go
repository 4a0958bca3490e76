package anchor

import (
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
)

// leafType is the first line of a leaf.
const leafType = "aivs-bundle/v1"

// Leaf returns the log entry of a bundle, three lines:
//
//	aivs-bundle/v1
//	<session id, '%' and control characters percent-encoded>
//	<SHA-256 of the .tar.gz, 64 hexadecimal digits>
func Leaf(sessionID, sha256 string) ([]byte, error) {
	if b, err := hex.DecodeString(sha256); err != nil || len(b) != 32 || strings.ToLower(sha256) != sha256 {
		return nil, fmt.Errorf("leaf: %.80q is not a SHA-256", sha256)
	}
	return fmt.Appendf(nil, "%s\n%s\n%s\n", leafType, lineOf(sessionID), sha256), nil
}

// ParseLeaf is the inverse of Leaf.
func ParseLeaf(leaf []byte) (sessionID, sha256 string, err error) {
	lines := strings.Split(string(leaf), "\n")
	if len(lines) != 4 || lines[0] != leafType || lines[3] != "" {
		return "", "", fmt.Errorf("leaf: %.80q is not a leaf", leaf)
	}
	if sessionID, err = url.PathUnescape(lines[1]); err != nil {
		return "", "", fmt.Errorf("leaf: %w", err)
	}
	again, err := Leaf(sessionID, lines[2])
	if err == nil && string(again) != string(leaf) {
		err = fmt.Errorf("leaf: %.80q is not written as Leaf writes it", leaf)
	}
	return sessionID, lines[2], err
}

// lineOf escapes an id to fit on one line. Most ids stay unchanged.
func lineOf(id string) string {
	var b strings.Builder
	for i := range len(id) {
		if c := id[i]; c < ' ' || c == 0x7f || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
