package micro

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// Result is the outcome of verifying a proof (draft section 6.4).
type Result string

// The three results.
const (
	Pass Result = "PASS"
	Fail Result = "FAIL"
	Skip Result = "SKIP" // the proof is unsigned: nothing is proven
)

// Sign signs the proof's payload and replaces its signature.
func (p *Proof) Sign(key ed25519.PrivateKey) {
	p.Signature = signaturePrefix + base64.StdEncoding.EncodeToString(ed25519.Sign(key, []byte(p.Payload())))
}

// Verify verifies a proof that Parse or New returned. It returns Skip for an unsigned proof.
func (p *Proof) Verify(key ed25519.PublicKey) Result {
	if p.Signature == Unsigned {
		return Skip
	}
	signature, err := p.signature()
	if err != nil || len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, []byte(p.Payload()), signature) {
		return Fail
	}
	return Pass
}

// signature decodes the signature. It accepts only one text for each signature.
func (p *Proof) signature() ([]byte, error) {
	text, ok := strings.CutPrefix(p.Signature, signaturePrefix)
	if !ok {
		return nil, errors.New("no Ed25519 signature")
	}
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("signature: %w", err)
	}
	if len(b) != ed25519.SignatureSize || base64.StdEncoding.EncodeToString(b) != text {
		return nil, fmt.Errorf("signature: %d bytes, want %d", len(b), ed25519.SignatureSize)
	}
	return b, nil
}
