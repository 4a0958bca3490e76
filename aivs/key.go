package aivs

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
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

// readPublicKey reads public_key.pem in any form in use: an SPKI PEM block, a comment line with
// the key in hexadecimal, both, or the bare key. It returns nil when there is no key. It returns
// an error when the forms disagree, or when anyone can sign for the key.
func readPublicKey(text []byte) (ed25519.PublicKey, error) {
	key, err := writtenKey(text)
	if err == nil && SmallOrder(key) {
		return nil, said(saysSmallOrder)
	}
	return key, err
}

// SmallOrder reports whether a key is one of the few points of small order, for which anyone can
// make a valid signature of any text. The list has every encoding of each, except for the sign of
// x.
func SmallOrder(key ed25519.PublicKey) bool {
	if len(key) != ed25519.PublicKeySize {
		return false
	}
	unsigned := bytes.Clone(key)
	unsigned[len(unsigned)-1] &= 0x7f
	switch hex.EncodeToString(unsigned) {
	case "0000000000000000000000000000000000000000000000000000000000000000",
		"0100000000000000000000000000000000000000000000000000000000000000",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f":
		return true
	}
	return false
}

// writtenKey returns the key in public_key.pem without judging the key itself.
func writtenKey(text []byte) (ed25519.PublicKey, error) {
	var found []ed25519.PublicKey
	for line := range strings.SplitSeq(string(text), "\n") {
		if digits, ok := strings.CutPrefix(line, keyComment); ok {
			key, err := hexKey(strings.Trim(digits, " \t\r"))
			if err != nil {
				return nil, err
			}
			found = append(found, key)
		}
	}
	if key, err := pemKey(text); err != nil {
		return nil, err
	} else if key != nil {
		found = append(found, key)
	}
	if len(found) == 0 {
		return bareKey(text)
	}
	for _, key := range found {
		if !key.Equal(found[0]) {
			return nil, said(saysTwoKeys)
		}
	}
	return found[0], nil
}

// bareKey reads a file that holds only a key: its 32 bytes (draft section 4.2), in hexadecimal
// digits or in base64. It returns nil for anything else.
func bareKey(text []byte) (ed25519.PublicKey, error) {
	if len(text) == ed25519.PublicKeySize {
		return bytes.Clone(text), nil
	}
	bare := string(bytes.Trim(text, " \t\r\n"))
	if len(bare) == hex.EncodedLen(ed25519.PublicKeySize) {
		return hexKey(bare)
	}
	if key, ok := strictBase64(bare); ok && len(key) == ed25519.PublicKeySize {
		return key, nil
	}
	return nil, nil
}

func hexKey(digits string) (ed25519.PublicKey, error) {
	key, err := hex.DecodeString(digits)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, &saying{saysNotKey, fmt.Errorf("%.80q is not %d hexadecimal digits", digits, 2*ed25519.PublicKeySize)}
	}
	return key, nil
}

// pemKey reads the first PEM block. It returns nil when there is none.
func pemKey(text []byte) (ed25519.PublicKey, error) {
	_, after, ok := bytes.Cut(text, []byte(pemBegin))
	if !ok {
		return nil, nil
	}
	body, _, ok := bytes.Cut(after, []byte(pemEnd))
	if !ok {
		return nil, nil
	}
	compact := strings.NewReplacer(" ", "", "\t", "", "\n", "", "\r", "", "\v", "", "\f", "").Replace(string(body))
	der, ok := strictBase64(compact)
	key, isEd25519 := bytes.CutPrefix(der, []byte(spkiPrefix))
	if !ok || !isEd25519 || len(key) != ed25519.PublicKeySize {
		return nil, &saying{saysNotKey, errors.New("the PEM block is not an Ed25519 SubjectPublicKeyInfo")}
	}
	return key, nil
}

// strictBase64 decodes canonical, padded base64 in the standard alphabet only.
func strictBase64(text string) ([]byte, bool) {
	decoded, err := base64.StdEncoding.Strict().DecodeString(text)
	return decoded, err == nil && !strings.ContainsAny(text, "\r\n") // the decoder ignores line breaks
}
