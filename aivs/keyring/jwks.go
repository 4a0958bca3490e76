package keyring

import (
	"encoding/base64"

	"github.com/go-json-experiment/json"
)

// JWKSType is the media type of a JSON Web Key Set (RFC 7517 section 8.5.2).
const JWKSType = "application/jwk-set+json"

// sessionKid is the key id under which AIVS readers look for the current key.
const sessionKid = "aivs-session-key"

// jwk is an Ed25519 key as a JSON Web Key (RFC 8037).
type jwk struct {
	Kty string `json:"kty"`
	Crv string `json:"crv"`
	Kid string `json:"kid"`
	X   string `json:"x"` // base64url
	Use string `json:"use"`
	Nbf int64  `json:"nbf,omitzero"` // Unix seconds, as in a token
	Exp int64  `json:"exp,omitzero"`
}

// JWKS returns the session keys as a JSON Web Key Set, retired ones included. The current key is
// also listed under the id "aivs-session-key". Keys for other purposes are not in the set, since
// it cannot express the purpose of a key.
func (r *Ring) JWKS() ([]byte, error) {
	keys := []jwk{}
	for _, k := range r.last.Keys {
		if k.Purpose == Session {
			keys = append(keys, k.jwk(k.KeyID))
		}
	}
	if k, ok := r.Current(Session); ok {
		keys = append(keys, k.jwk(sessionKid))
	}
	return json.Marshal(map[string][]jwk{"keys": keys})
}

func (k *Key) jwk(kid string) jwk {
	w := jwk{Kty: "OKP", Crv: "Ed25519", Kid: kid, X: base64.RawURLEncoding.EncodeToString(k.Public()), Use: "sig"}
	if !k.NotBefore.IsZero() {
		w.Nbf = k.NotBefore.Unix()
	}
	if !k.NotAfter.IsZero() {
		w.Exp = k.NotAfter.Unix()
	}
	return w
}
