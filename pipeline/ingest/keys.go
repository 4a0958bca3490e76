package ingest

import (
	"context"
	"encoding/base64"
	"net/http"

	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/pipeline/keystore"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/schema"
)

// followKey opens the key of a purpose, after recording the key in the ledger.
func (s *server) followKey(ctx context.Context, path string, purpose keyring.Purpose) (*keystore.Live, error) {
	return keystore.Slot{Path: path, Purpose: purpose}.Follow(ctx, service.PatientLedger{Env: s.env, Broker: s.ledger})
}

// watchKeys follows key rotations until ctx ends.
func (s *server) watchKeys(ctx context.Context) error {
	watch := func(key *keystore.Live) func(context.Context) error {
		return func(ctx context.Context) error {
			if key == nil {
				return nil
			}
			return key.Watch(ctx, s.env.Log)
		}
	}
	return service.Group(ctx, watch(s.microKey), watch(s.handshakeKey))
}

// publicKey is a public key in the form that cards use.
type publicKey struct {
	KeyID     string `json:"key_id"`
	Algorithm string `json:"algorithm"`
	PublicKey string `json:"public_key"` // base64 of 32 bytes
}

// writeKeys answers with public keys.
func writeKeys(w http.ResponseWriter, public []schema.Key) int {
	keys := make([]publicKey, len(public))
	for i, k := range public {
		keys[i] = publicKey{KeyID: k.KeyID, Algorithm: schema.SignatureEd25519, PublicKey: base64.StdEncoding.EncodeToString(k.PublicKey)}
	}
	return writeJSON(w, http.StatusOK, map[string][]publicKey{"keys": keys})
}
