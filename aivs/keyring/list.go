package keyring

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/schema"
)

// Purpose is the one kind of text that a key signs.
type Purpose string

// The purposes of keys.
const (
	Session   Purpose = "session"   // bundles
	Micro     Purpose = "micro"     // AIVS-Micro proofs
	Handshake Purpose = "handshake" // answers of the coherence handshake
	Log       Purpose = "log"       // checkpoints of the transparency log
)

// Purposes returns all purposes.
func Purposes() []Purpose { return []Purpose{Session, Micro, Handshake, Log} }

// listType names the format. It is the first line of the signed text, which separates a list's
// signatures from all other signatures by the same key.
const listType = "plumbline-keys/1"

// List is one line of the file: all keys at one time.
type List struct {
	Type       string      `json:"type"`    // "plumbline-keys/1"
	Version    int64       `json:"version"` // 1 in the first line, one more in each next line
	IssuedAt   time.Time   `json:"issued_at"`
	Keys       []Key       `json:"keys"` // in the order in which they were added; the last one is new
	Signatures []Signature `json:"signatures,omitempty"`
}

// Key is a public key with its purpose and period of validity. Times are UTC, to the second.
type Key struct {
	KeyID     string    `json:"key_id"`     // aivs.KeyID of the key
	PublicKey string    `json:"public_key"` // 64 hexadecimal digits
	Purpose   Purpose   `json:"purpose"`
	NotBefore time.Time `json:"not_before,omitzero"` // the first second at which it may sign; absent: unknown
	NotAfter  time.Time `json:"not_after,omitzero"`  // the last second at which it may sign; absent: no end is set yet
}

// Signature is one of a line's signatures: Ed25519 over the line
// "plumbline-keys/1" and the JCS form (RFC 8785) of the list without its member
// signatures.
type Signature struct {
	KeyID string `json:"key_id"`
	Value string `json:"value"` // base64
}

// Public returns the decoded key.
func (k *Key) Public() ed25519.PublicKey {
	b, err := hex.DecodeString(k.PublicKey)
	if err != nil {
		return nil // does not happen for a key of a Ring, which was checked
	}
	return b
}

// describe returns the key's name for error messages.
func (k *Key) describe() string { return fmt.Sprintf("%s key %s", k.Purpose, k.KeyID) }

func newKey(public ed25519.PublicKey, purpose Purpose) Key {
	return Key{KeyID: aivs.KeyID(public), PublicKey: hex.EncodeToString(public), Purpose: purpose}
}

// current returns the key of a purpose that was added last; nil when there is none.
func (l *List) current(purpose Purpose) *Key {
	for i := len(l.Keys) - 1; i >= 0; i-- {
		if l.Keys[i].Purpose == purpose {
			return &l.Keys[i]
		}
	}
	return nil
}

// find returns the entry of a key; nil when it is not listed.
func (l *List) find(public ed25519.PublicKey) *Key {
	digits := hex.EncodeToString(public)
	i := slices.IndexFunc(l.Keys, func(k Key) bool { return k.PublicKey == digits })
	if i < 0 {
		return nil
	}
	return &l.Keys[i]
}

func (l *List) payload() ([]byte, error) {
	bare := *l
	bare.Signatures = nil
	text, err := json.Marshal(&bare)
	if err != nil {
		return nil, err
	}
	form, err := schema.Canonical(text)
	return append([]byte(listType+"\n"), form...), err
}

// line returns the only accepted form of a list in the file, including its line feed.
func (l *List) line() ([]byte, error) {
	text, err := json.Marshal(l)
	return append(text, '\n'), err
}

func (l *List) sign(key ed25519.PrivateKey) error {
	payload, err := l.payload()
	if err != nil {
		return err
	}
	l.Signatures = append(l.Signatures, Signature{
		KeyID: aivs.KeyID(key.Public().(ed25519.PublicKey)),
		Value: base64.StdEncoding.EncodeToString(ed25519.Sign(key, payload)),
	})
	return nil
}

// signedBy checks that the list has exactly the signatures of the keys, in order.
func (l *List) signedBy(keys ...*Key) error {
	if len(l.Signatures) != len(keys) {
		return fmt.Errorf("%d signatures, want %d", len(l.Signatures), len(keys))
	}
	payload, err := l.payload()
	if err != nil {
		return err
	}
	for i, key := range keys {
		s := l.Signatures[i]
		value, _ := base64.StdEncoding.DecodeString(s.Value) // an encoding that is not canonical is refused with the others
		if base64.StdEncoding.EncodeToString(value) != s.Value || s.KeyID != key.KeyID || !ed25519.Verify(key.Public(), payload, value) {
			return fmt.Errorf("signature %d is not by %s", i+1, key.describe())
		}
	}
	return nil
}

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
