// Package signature makes and checks the signatures of cards, traces and handshake messages
// (AAP sections 6.3.2, 9.2 and 9.3).
//
// A signature covers the JCS form (RFC 8785) of the JSON object without its own top-level
// member "signature". The order of members, white space, escapes and the notation of numbers do
// not matter; every value does. The only algorithm is Ed25519.
//
// The package does not know which keys to trust: the caller passes them. It does no I/O.
//
// Invariant: two objects with the same signed form mean the same to a reader of 64-bit floats
// and to a reader of integers. Therefore both Sign and Verify refuse integers that the form
// would have to round.
package signature

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/plumbline/plumbline/schema"
)

// Member is the name of the member that holds a signature.
const Member = "signature"

// The faults of a signature. Every error of Verify, Find and Of wraps one of these. With
// ErrUnsignable it says why the object has no signed form.
var (
	ErrMissing    = errors.New("there is no signature")
	ErrMalformed  = errors.New("the signature is malformed")
	ErrUnknownKey = errors.New("the signature is by an unknown key")
	ErrWrong      = errors.New("the signature does not match the content")
	ErrUnsignable = errors.New("the object cannot be signed")
)

// Sign signs a JSON object. It does not sign a signature that the object already has. The error
// is ErrUnsignable, or says that keyID or key is invalid.
func Sign(object []byte, keyID string, key ed25519.PrivateKey) (schema.Signature, error) {
	if len(key) != ed25519.PrivateKeySize {
		return schema.Signature{}, fmt.Errorf("sign: a private key of %d bytes, want %d", len(key), ed25519.PrivateKeySize)
	}
	if keyID == "" || len(keyID) > schema.MaxIDBytes {
		return schema.Signature{}, fmt.Errorf("sign: a key id of %d bytes, want 1 to %d", len(keyID), schema.MaxIDBytes)
	}
	payload, err := Payload(object)
	if err != nil {
		return schema.Signature{}, err
	}
	return schema.Signature{
		Algorithm: schema.SignatureEd25519,
		Value:     base64.StdEncoding.EncodeToString(ed25519.Sign(key, payload)),
		KeyID:     keyID,
	}, nil
}

// Attach returns the object with s as its last member; it replaces an existing signature. All
// other bytes stay as they are.
func Attach(object []byte, s schema.Signature) ([]byte, error) {
	block, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write a signature: %w", err)
	}
	signed, err := schema.PutMember(object, Member, block)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsignable, err)
	}
	return signed, nil
}

// Signed signs a JSON object and attaches the signature.
func Signed(object []byte, keyID string, key ed25519.PrivateKey) ([]byte, error) {
	s, err := Sign(object, keyID, key)
	if err != nil {
		return nil, err
	}
	return Attach(object, s)
}

// Verify returns nil if s is the signature of a JSON object by one of the keys.
func Verify(object []byte, s schema.Signature, keys []schema.Key) error {
	_, err := Find(object, s, keys)
	return err
}

// Find is Verify that also returns the key: the first key with the id s.KeyID that s verifies
// with. An agent that reused a key id after a rotation has several such keys.
func Find(object []byte, s schema.Signature, keys []schema.Key) (schema.Key, error) {
	value, err := s.Bytes()
	if err != nil {
		return schema.Key{}, fmt.Errorf("%w: /value: %w", ErrMalformed, err)
	}
	if s.Algorithm != schema.SignatureEd25519 {
		return schema.Key{}, fmt.Errorf("%w: algorithm %q, want %s", ErrMalformed, s.Algorithm, schema.SignatureEd25519)
	}
	var payload []byte // computed only once there is a key to try: this is the most expensive step
	reason := ErrUnknownKey
	for _, key := range keys {
		if key.KeyID != s.KeyID || len(key.PublicKey) != ed25519.PublicKeySize {
			continue
		}
		if payload == nil {
			if payload, err = Payload(object); err != nil {
				return schema.Key{}, err
			}
		}
		if ed25519.Verify(key.PublicKey, payload, value) {
			return key, nil
		}
		reason = ErrWrong
	}
	return schema.Key{}, fmt.Errorf("%w (key id %q)", reason, s.KeyID)
}

// Of reads the signature from the members of an object, such as schema.Trace.Others. It returns
// ErrMissing where there is none or null, and ErrMalformed where the member is not a signature
// block.
func Of(members schema.Members) (*schema.Signature, error) {
	raw, ok := members.Get(Member)
	if !ok || string(raw) == "null" {
		return nil, ErrMissing
	}
	s, err := schema.DecodeSignature(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return s, nil
}

// Payload returns the bytes to sign: the JCS form of a JSON object without its top-level member
// "signature". The error is ErrUnsignable with the reason: not strict JSON, not an object, or a
// number that a 64-bit float cannot represent.
func Payload(object []byte) ([]byte, error) {
	bare, _, err := schema.CutMember(object, Member)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsignable, err)
	}
	payload, err := schema.Canonical(bare)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsignable, err)
	}
	return payload, nil
}
