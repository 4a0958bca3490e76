package exporter

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync"
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
	list   shownList
}

// shownList is the key list for whoever asks over HTTP: as it is now, but read and
// checked once for each change, which may be of another process.
type shownList struct {
	mu   sync.Mutex
	path string
	file os.FileInfo // when it was read
	ring *keyring.Ring
}

func (s *shownList) now() (*keyring.Ring, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	file, err := os.Stat(s.path)
	if err != nil {
		return nil, err
	}
	if same(file, s.file) {
		return s.ring, nil
	}
	ring, err := keystore.ReadList(s.path)
	if err != nil {
		return nil, err
	}
	s.ring, s.file = ring, file
	return ring, nil
}

// same tells whether a file is the one that it was.
func same(now, before os.FileInfo) bool {
	return before != nil && os.SameFile(now, before) && now.ModTime().Equal(before.ModTime())
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
		if !same(info, s.file) {
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
	s.list.path = s.slot.List()
	show := func(pattern, kind string, form func(*keyring.Ring) ([]byte, error)) {
		env.Routes.Handle(pattern, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			ring, err := s.list.now()
			var text []byte
			if err == nil {
				text, err = form(ring)
			}
			if err != nil {
				env.Log.Error("the keys cannot be shown", "error", err)
				http.Error(w, "the key list cannot be read", http.StatusInternalServerError)
				return
			}
			write(w, kind, text)
		}))
	}
	show("GET /.well-known/jwks.json", keyring.JWKSType, (*keyring.Ring).JWKS)
	show("GET /v1/keys", "application/x-ndjson", func(r *keyring.Ring) ([]byte, error) { return r.Text(), nil })
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
	return opened, earlier, nil
}
