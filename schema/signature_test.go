package schema

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
)

// A signature block names Ed25519, a key, and 64 bytes in base64 (RFC 4648, section 4). Each
// signature has exactly one base64 text (AAP section 9.2).
func TestDecodeSignature(t *testing.T) {
	s, err := DecodeSignature([]byte(strings.Replace(signatureBlock, "{", `{"more":[1],`, 1)))
	if err != nil || s.Algorithm != "Ed25519" || s.KeyID != "k1" {
		t.Fatalf("%+v, %v", s, err)
	}
	if b, err := s.Bytes(); err != nil || len(b) != 64 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	value := s.Value
	of := func(size int) string { return base64.StdEncoding.EncodeToString(make([]byte, size)) }
	for name, block := range map[string]string{
		"no object":     `[]`,
		"cut off":       signatureBlock[:40],
		"more behind":   signatureBlock + "{}",
		"no key":        strings.Replace(signatureBlock, "key_id", "key", 1),
		"63 bytes":      strings.Replace(signatureBlock, value, of(63), 1),
		"65 bytes":      strings.Replace(signatureBlock, value, of(65), 1),
		"66 bytes":      strings.Replace(signatureBlock, value, of(66), 1),
		"without its =": strings.Replace(signatureBlock, value, strings.TrimRight(value, "="), 1),
		"a stray bit":   strings.Replace(signatureBlock, "A==", "B==", 1),
		"a line break":  strings.Replace(signatureBlock, "AAAA==", `AA\nAA==`, 1),
		"of URLs":       strings.Replace(signatureBlock, "AAAA==", `A-_A==`, 1),
		"not a string":  strings.Replace(signatureBlock, `"`+value+`"`, `7`, 1),
	} {
		var refusal *Refusal
		if _, err := DecodeSignature([]byte(block)); !errors.As(err, &refusal) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
