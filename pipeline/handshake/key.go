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

// Key signs the answers of a service: the cards it answers with and the results.
// All processes that serve the same agents share one.
type Key struct {
	private ed25519.PrivateKey
	public  schema.Key
}

// Signer is what a service signs its answers with.
type Signer interface {
	// Key is the key in use, if its time has come and is not over.
	Key(now time.Time) (*Key, error)
	// Public are the keys in use and of before, the one in use first.
	Public() []schema.Key
}

// Live is the key of a slot on disk as it is now.
type Live struct{ *keystore.Live }

// Key is the key in use.
func (l Live) Key(now time.Time) (*Key, error) {
	opened, err := l.Current(now)
	if err != nil {
		return nil, err
	}
	return NewKey(opened.Private), nil
}

// Public are the handshake keys of the key list.
func (l Live) Public() (public []schema.Key) {
	for _, k := range l.Keys() {
		public = append(public, schema.Key{KeyID: k.KeyID, PublicKey: k.Public()})
	}
	return public
}

// NewKey returns the key with the id that its public half has everywhere.
func NewKey(private ed25519.PrivateKey) *Key {
	public := private.Public().(ed25519.PublicKey)
	return &Key{private: private, public: schema.Key{KeyID: aivs.KeyID(public), PublicKey: public}}
}

// Key is the key itself: one that is not rotated.
func (k *Key) Key(time.Time) (*Key, error) { return k, nil }

// Public is what requesters check the signatures with.
func (k *Key) Public() []schema.Key { return []schema.Key{k.public} }

// sign signs a JSON object (without its own member "signature").
func (k *Key) sign(object []byte) (*schema.Signature, error) {
	s, err := signature.Sign(object, k.public.KeyID, k.private)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return &s, nil
}

// signed writes a message of ours with its signature; place is where it goes.
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
