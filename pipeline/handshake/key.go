package handshake

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/keyring"
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

// OpenKey reads the key in a file (32 raw bytes, mode 0600), which is on the key
// list beside it; the first to open it makes it.
func OpenKey(ctx context.Context, path string) (*Key, error) {
	opened, err := keystore.Slot{Path: path, Purpose: keyring.Handshake}.Open(ctx, time.Now())
	if err != nil {
		return nil, fmt.Errorf("handshake key: %w", err)
	}
	return NewKey(opened.Private), nil
}

// NewKey returns the key with the id that its public half has everywhere.
func NewKey(private ed25519.PrivateKey) *Key {
	public := private.Public().(ed25519.PublicKey)
	return &Key{private: private, public: schema.Key{KeyID: aivs.KeyID(public), PublicKey: public}}
}

// Public is what requesters check the signatures with.
func (k *Key) Public() schema.Key { return k.public }

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
