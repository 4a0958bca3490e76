package exporter

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/keystore"
	"github.com/plumbline/plumbline/pipeline/run"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// signer is the key that bundles are signed with. The key file is looked at before
// each round, so that a rotation is noticed without a restart. The zero signer
// signs with what the exporter was given.
type signer struct {
	slot   keystore.Slot
	file   os.FileInfo // when it was read
	opened *keystore.Opened
	ring   atomic.Pointer[keyring.Ring] // for whoever asks over HTTP
}

// openSigner loads the key, or makes it on the first start.
func (e *exporter) openSigner(ctx context.Context, path string) error {
	e.signer.slot = keystore.Slot{Path: path, Purpose: keyring.Session}
	if err := e.reloadKey(ctx); err != nil {
		return fmt.Errorf("signing key: %w", err)
	}
	if e.signer.opened.Made {
		e.env.Log.Info("made a signing key", "file", path, "key_id", e.keyID)
	}
	return e.tellKey(ctx)
}

// tellKey puts into the ledger which key signs from now on.
func (e *exporter) tellKey(ctx context.Context) error {
	data, err := json.Marshal(map[string]string{
		"event": "signing_key", "purpose": string(keyring.Session), "key_id": e.keyID, "public_key": e.signer.opened.Entry.PublicKey,
	})
	if err != nil {
		return fmt.Errorf("encode the key's event: %w", err)
	}
	return e.env.Retry.Do(ctx, "tell the ledger which key signs", func() error {
		return e.broker.AppendLedger(ctx, stream.LedgerEvent{Type: string(ledger.Meta), ID: "key." + e.keyID, Data: data})
	})
}

func (e *exporter) reloadKey(ctx context.Context) error {
	s := &e.signer
	opened, err := s.slot.Open(ctx, time.Now())
	if err != nil {
		return err
	}
	if s.file, err = os.Stat(s.slot.Path); err != nil {
		return err
	}
	s.opened = opened
	s.ring.Store(opened.Ring)
	e.key, e.keyID = opened.Private, opened.Entry.KeyID
	return nil
}

// renewKey takes up a key that was rotated, and waits where there is none that may
// sign now: what it signed would be refused.
func (e *exporter) renewKey(ctx context.Context) error {
	s := &e.signer
	if s.opened == nil {
		return nil
	}
	return e.env.Retry.Do(ctx, "use the signing key", func() error {
		info, err := os.Stat(s.slot.Path)
		if err != nil {
			return err
		}
		if !os.SameFile(info, s.file) || !info.ModTime().Equal(s.file.ModTime()) {
			if err := e.reloadKey(ctx); err != nil {
				return err
			}
			e.env.Log.Info("signing with another key", "key_id", e.keyID)
			if err := e.tellKey(ctx); err != nil {
				return err
			}
		}
		if err := s.opened.Entry.ValidAt(time.Now().Truncate(time.Second)); err != nil {
			return fmt.Errorf("%w: make another with: plumbline keys rotate", err)
		}
		return nil
	})
}

// serve shows everyone the keys: as a JSON Web Key Set, and as the list that
// leads from any of them to the others.
func (s *signer) serve(env *run.Env) {
	env.Routes.Handle("GET /.well-known/jwks.json", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		set, err := s.ring.Load().JWKS()
		if err != nil {
			http.Error(w, "encode the key set: "+err.Error(), http.StatusInternalServerError)
			return
		}
		write(w, keyring.JWKSType, set)
	}))
	env.Routes.Handle("GET /v1/keys", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		write(w, "application/x-ndjson", s.ring.Load().Text())
	}))
}

// write answers with a text that anyone may keep for a minute.
func write(w http.ResponseWriter, kind string, text []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "public, max-age=60")
	// An error here is the client's: it left before it had its answer.
	_, _ = w.Write(text)
}

// logKey opens the key of the transparency log, which lies beside that of sessions.
func (s *signer) logKey(ctx context.Context, dir string) (*keystore.Opened, []ed25519.PublicKey, error) {
	opened, err := keystore.In(dir, keyring.Log).Open(ctx, time.Now())
	if err != nil {
		return nil, nil, fmt.Errorf("key of the transparency log: %w", err)
	}
	var earlier []ed25519.PublicKey
	for _, k := range opened.Ring.Keys() {
		if k.Purpose == keyring.Log && k.KeyID != opened.Entry.KeyID {
			earlier = append(earlier, k.Public())
		}
	}
	s.ring.Store(opened.Ring) // which the log's key may just have joined
	return opened, earlier, nil
}
