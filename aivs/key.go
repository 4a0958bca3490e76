package aivs

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
)

const (
	pemBegin   = "-----BEGIN PUBLIC KEY-----"
	pemEnd     = "-----END PUBLIC KEY-----"
	keyComment = "# Ed25519 public key:"
	noKey      = "# No signing key configured\n"
	noSigning  = "# Ed25519 signing not available\n"

	// spkiPrefix precedes the 32 bytes of an Ed25519 key in its
	// SubjectPublicKeyInfo (RFC 8410).
	spkiPrefix = "\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00"
)

// KeyID returns the short id of a public key: the first 16 hexadecimal digits of its SHA-256.
func KeyID(public ed25519.PublicKey) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:8])
}

// ParseKey reads a public key from 64 hexadecimal digits or from any form of public_key.pem. It
// refuses the bare 32 bytes: a private key looks the same.
func ParseKey(text string) (ed25519.PublicKey, error) {
	if len(text) == ed25519.PublicKeySize {
		return nil, errors.New("bare bytes could be a private key: want the public key as 64 hexadecimal digits or a PEM block")
	}
	key, err := readPublicKey([]byte(text))
	if err != nil {
		return nil, err
	}
	if key == nil {
		return nil, errors.New("no Ed25519 public key: want 64 hexadecimal digits or a PEM block")
	}
	return key, nil
}

// publicKeyFile returns public_key.pem (draft sections 4.2 and 5.1) in the form that every known
// verifier reads: an SPKI PEM block, then the key as a comment line. For a nil key the file
// states that there is no key.
func publicKeyFile(public ed25519.PublicKey) []byte {
	if public == nil {
		return []byte(noKey)
	}
	spki := append([]byte(spkiPrefix), public...)
	return fmt.Appendf(nil, "%s\n%s\n%s\n%s %x\n", pemBegin, base64.StdEncoding.EncodeToString(spki), pemEnd, keyComment, []byte(public))
}

// signatureFile returns session_sig.txt (draft section 4.3). Without a key it states that there
// is no signature (4.4).
func signatureFile(key ed25519.PrivateKey, chainHash string) []byte {
	if key == nil {
		return fmt.Appendf(nil, "chain_hash:%s\n%s", chainHash, noSigning)
	}
	signature := ed25519.Sign(key, []byte(chainHash))
	return fmt.Appendf(nil, "chain_hash:%s\nsignature:%s\n", chainHash, base64.StdEncoding.EncodeToString(signature))
}
