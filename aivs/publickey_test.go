package aivs

import (
	"encoding/base64"
	"testing"
)

// A PEM block must contain an Ed25519 key as a SubjectPublicKeyInfo (RFC 8410), in the one
// canonical base64, and nothing else. Any other block is refused, not ignored.
func TestKeysInPEM(t *testing.T) {
	key := publicOf(testKey("k"))
	encoded := base64.StdEncoding.EncodeToString
	info := append([]byte(spkiPrefix), key...)
	for name, c := range map[string]struct {
		body string
		read bool
	}{
		"a key":                {encoded(info), true},
		"in lines":             {"\r\n " + encoded(info)[:20] + "\n\t" + encoded(info)[20:] + "\n", true},
		"its bytes alone":      {encoded(key), false},
		"a byte short":         {encoded(info[:len(info)-1]), false},
		"a byte more":          {encoded(append(info, 0)), false},
		"of another algorithm": {encoded(append([]byte("0*0\x05\x06\x03+en\x03!\x00"), key...)), false},
		"text behind it":       {encoded(info) + "A", false},
		"another alphabet":     {"_" + encoded(info)[1:], false},
		"without its padding":  {base64.RawStdEncoding.EncodeToString(info), false},
		"nothing":              {"", false},
	} {
		got, err := readPublicKey([]byte(pemBegin + c.body + pemEnd))
		if (err == nil) != c.read || c.read && !got.Equal(key) {
			t.Errorf("%s: %x, %v", name, got, err)
		}
	}
}

// Base64 has only one accepted text for each sequence of bytes: padded, and without line ends.
func TestStrictBase64(t *testing.T) {
	for text, want := range map[string]bool{"": true, "QQ==": true, "QQ": false, "QR==": false, "QQ==\n": false, "\n": false, "Q\rQ==": false, "QQ==Q": false, "Q_==": false} {
		if got, ok := strictBase64(text); ok != want {
			t.Errorf("%q: %q, %t", text, got, ok)
		}
	}
}
