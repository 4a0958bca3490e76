package schema

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
)

// SignatureEd25519 is the one algorithm of signatures (AAP section 9.2).
const SignatureEd25519 = "Ed25519"

// Signature is a signature block as it stands in cards, traces and handshake
// messages (AAP sections 6.3.2, 9.2 and 9.3): over the JCS form (RFC 8785) of
// the object without its own member "signature". Package schema/signature makes
// and checks it.
type Signature struct {
	Algorithm string `json:"algorithm"` // "Ed25519"
	Value     string `json:"value"`     // base64 (RFC 4648, section 4) of 64 bytes
	KeyID     string `json:"key_id"`
}

// Key is a public key that an agent signs with. A card registers its agent's keys
// in extensions.plumbline.keys, so that they are as unchangeable as the card:
// [{"key_id": "…", "algorithm": "Ed25519", "public_key": "<base64 of 32 bytes>"}].
type Key struct {
	KeyID     string
	PublicKey ed25519.PublicKey
}

// Bytes returns the 64 bytes of the signature.
func (s *Signature) Bytes() ([]byte, error) {
	return fixedBase64(s.Value, ed25519.SignatureSize)
}

// DecodeSignature reads a signature block. Members that nobody knows are
// ignored. The error is a *Refusal with every fault found, pointers counting
// from the block.
func DecodeSignature(raw []byte) (*Signature, error) {
	var d tableReader
	d.reset(raw)
	s := d.signature()
	d.end()
	if err := d.refusal(ReasonInvalidSignature); err != nil {
		return nil, err
	}
	return s, nil
}

// signature reads a signature block.
func (d *tableReader) signature() *Signature {
	s := new(Signature)
	d.object(members{
		"algorithm": choice(d, &s.Algorithm, SignatureEd25519),
		"value":     func() { s.Value, _ = d.base64(ed25519.SignatureSize) },
		"key_id":    into(&s.KeyID, d.identifier),
	}, "algorithm", "value", "key_id")
	return s
}

// base64 reads a text that stands for size bytes.
func (d *tableReader) base64(size int) (text string, decoded []byte) {
	faults := len(d.faults)
	text = d.text()
	if d.err != nil || len(d.faults) > faults {
		return "", nil
	}
	decoded, err := fixedBase64(text, size)
	if err != nil {
		d.fault("%v", err)
	}
	return text, decoded
}

// fixedBase64 decodes base64 (RFC 4648, section 4: padded, no line breaks, no
// stray bits) of exactly size bytes.
func fixedBase64(text string, size int) ([]byte, error) {
	// The length is compared as well: the decoder passes over line breaks.
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != size || len(text) != base64.StdEncoding.EncodedLen(size) {
		return nil, fmt.Errorf("want %d bytes in padded base64, found %q", size, clip(text))
	}
	return b, nil
}
