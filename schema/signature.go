package schema

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
)

// Digest is a SHA-256: of a record's bytes from opening to closing brace, or of
// a card's JCS form.
type Digest [sha256.Size]byte

// DigestOf returns the SHA-256 of b.
func DigestOf(b []byte) Digest { return sha256.Sum256(b) }

// String returns 64 lower-case hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// IsZero reports whether d was never set.
func (d Digest) IsZero() bool { return d == Digest{} }

// MarshalText writes the hexadecimal form.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads 64 hexadecimal digits.
func (d *Digest) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(d)) {
		return fmt.Errorf("digest: %d characters, want %d hexadecimal digits", len(text), hex.EncodedLen(len(d)))
	}
	if _, err := hex.Decode(d[:], text); err != nil {
		return fmt.Errorf("digest: %w", err)
	}
	return nil
}

// SignatureEd25519 is the only signature algorithm (AAP section 9.2).
const SignatureEd25519 = "Ed25519"

// Signature is the signature block of cards, traces and handshake messages (AAP sections 6.3.2,
// 9.2 and 9.3). It covers the JCS form (RFC 8785) of the object without its own member
// "signature". Package schema/signature makes and checks signatures.
type Signature struct {
	Algorithm string `json:"algorithm"` // "Ed25519"
	Value     string `json:"value"`     // base64 (RFC 4648, section 4) of 64 bytes
	KeyID     string `json:"key_id"`
}

// Key is a public key that an agent signs with. A card registers its agent's keys in
// extensions.plumbline.keys, so the keys can change no more than the card:
//
//	[{"key_id": "…", "algorithm": "Ed25519", "public_key": "<base64 of 32 bytes>"}]
type Key struct {
	KeyID     string
	PublicKey ed25519.PublicKey
}

// Bytes returns the 64 bytes of the signature.
func (s *Signature) Bytes() ([]byte, error) {
	return fixedBase64(s.Value, ed25519.SignatureSize)
}

// DecodeSignature reads a signature block. Unknown members are ignored. The error is a *Refusal
// with every fault found; the pointers are relative to the block.
func DecodeSignature(raw []byte) (*Signature, error) {
	var r reader
	r.reset(raw)
	s := r.signature()
	r.end()
	if err := r.refusal(ReasonInvalidSignature); err != nil {
		return nil, err
	}
	return s, nil
}

// signature reads a signature block.
func (r *reader) signature() *Signature {
	s := new(Signature)
	r.object(members{
		{"algorithm", choice(r, &s.Algorithm, SignatureEd25519)},
		{"value", func() { s.Value, _ = r.base64(ed25519.SignatureSize) }},
		{"key_id", into(&s.KeyID, r.identifier)},
	}, "algorithm", "value", "key_id")
	return s
}

// base64 reads the base64 text of exactly size bytes.
func (r *reader) base64(size int) (text string, decoded []byte) {
	faults := len(r.faults)
	text = r.text()
	if r.err != nil || len(r.faults) > faults {
		return "", nil
	}
	decoded, err := fixedBase64(text, size)
	if err != nil {
		r.fault("%v", err)
	}
	return text, decoded
}

// fixedBase64 decodes base64 (RFC 4648, section 4: padded, no line breaks, no
// stray bits) of exactly size bytes.
func fixedBase64(text string, size int) ([]byte, error) {
	// The length is compared as well, because the decoder ignores line breaks.
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != size || len(text) != base64.StdEncoding.EncodedLen(size) {
		return nil, fmt.Errorf("want %d bytes in padded base64, found %q", size, clip(text))
	}
	return b, nil
}
