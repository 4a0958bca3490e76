package handshake

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/pipeline/keystore"
	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/signature"
)

// Key signs the answers of a service: the cards and the results. All processes that serve the
// same agents share one key.
type Key struct {
	private ed25519.PrivateKey
	public  schema.Key
}

// Signer provides the keys for a service's answers.
type Signer interface {
	// Key returns the key in use, if now is within its period.
	Key(now time.Time) (*Key, error)
	// Public returns the keys in use and earlier ones, starting with the one in use.
	Public() []schema.Key
}

// Live is the current key of a slot on disk.
type Live struct{ *keystore.Live }

// Key returns the key in use.
func (l Live) Key(now time.Time) (*Key, error) {
	opened, err := l.Current(now)
	if err != nil {
		return nil, err
	}
	return NewKey(opened.Private), nil
}

// Public returns the handshake keys of the key list.
func (l Live) Public() (public []schema.Key) {
	for _, k := range l.Keys() {
		public = append(public, schema.Key{KeyID: k.KeyID, PublicKey: k.Public()})
	}
	return public
}

// NewKey returns a key with the id that its public half has everywhere.
func NewKey(private ed25519.PrivateKey) *Key {
	public := private.Public().(ed25519.PublicKey)
	return &Key{private: private, public: schema.Key{KeyID: aivs.KeyID(public), PublicKey: public}}
}

// Key returns k itself: it is not rotated.
func (k *Key) Key(time.Time) (*Key, error) { return k, nil }

// Public returns the key with which requesters verify the signatures.
func (k *Key) Public() []schema.Key { return []schema.Key{k.public} }

// sign signs a JSON object without its own member "signature".
func (k *Key) sign(object []byte) (*schema.Signature, error) {
	s, err := signature.Sign(object, k.public.KeyID, k.private)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return &s, nil
}

// signed encodes a message of this service with its signature. place is the member for the
// signature.
func (k *Key) signed(message any, place **schema.Signature) ([]byte, error) {
	bare, err := json.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("write a message: %w", err)
	}
	if *place, err = k.sign(bare); err != nil {
		return nil, err
	}
	return json.Marshal(message)
}
