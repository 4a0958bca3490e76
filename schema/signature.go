package schema

import "crypto/ed25519"

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
