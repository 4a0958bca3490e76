package exporter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"sync"

	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/pipeline/keystore"
	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/tlog"
)

// signer holds the keys that sign bundles and the transparency log. The key files are checked
// before each round, so a rotation needs no restart. With the zero signer the exporter keeps the
// key it was given.
type signer struct {
	session *keystore.Live
	log     *keystore.Live // nil: no log is configured
	list    shownList
}

// shownList is the key list that is served over HTTP. It is read and checked once after each
// change of the file, also by another process.
type shownList struct {
	mu   sync.Mutex
	path string
	file os.FileInfo // the state of the file when it was read
	ring *keyring.Ring
}

func (s *shownList) now() (*keyring.Ring, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	file, err := os.Stat(s.path)
	if err != nil {
		return nil, err
	}
	if s.file != nil && os.SameFile(file, s.file) && file.ModTime().Equal(s.file.ModTime()) {
		return s.ring, nil
	}
	ring, err := keystore.ReadList(s.path)
	if err != nil {
		return nil, err
	}
	s.ring, s.file = ring, file
	return ring, nil
}

// followKey opens a key, creates it at the first start, and shows when it expires. It returns after
// the ledger has the key's event.
func (e *exporter) followKey(ctx context.Context, slot keystore.Slot) (*keystore.Live, error) {
	live, err := slot.Follow(ctx, service.PatientLedger{Env: e.env, Broker: e.broker})
	if err != nil {
		return nil, fmt.Errorf("%s key: %w", slot.Purpose, err)
	}
	if opened := live.Opened(); opened.Made {
		e.env.Log.Info("made a signing key", "purpose", slot.Purpose, "file", slot.Path, "key_id", opened.Entry.KeyID)
	}
	live.Expose(e.env.Metrics)
	return live, nil
}

func (e *exporter) openSigner(ctx context.Context, path string) (err error) {
	slot := keystore.Slot{Path: path, Purpose: keyring.Session}
	e.signer.list.path = slot.List()
	if e.signer.session, err = e.followKey(ctx, slot); err == nil {
		opened := e.signer.session.Opened()
		e.key, e.keyID = opened.Private, opened.Entry.KeyID
	}
	return err
}

// renewKeys adopts rotated keys. It waits while there is no key that may sign now, since
// verifiers would refuse its signatures.
func (e *exporter) renewKeys(ctx context.Context) error {
	if e.signer.session == nil {
		return nil
	}
	return e.env.Retry.Do(ctx, "use the signing keys", func() error {
		opened, err := e.renewed(ctx, e.signer.session)
		if err != nil {
			return err
		}
		e.key, e.keyID = opened.Private, opened.Entry.KeyID
		if e.signer.log == nil {
			return nil
		}
		if _, err := e.renewed(ctx, e.signer.log); err != nil {
			return err
		}
		return e.anchors.log.Use(e.signer.logKey(e.cfg.logOrigin()))
	})
}

// renewed returns the key in use now if it may sign.
func (e *exporter) renewed(ctx context.Context, live *keystore.Live) (*keystore.Opened, error) {
	changed, err := live.Renew(ctx)
	if err != nil {
		return nil, err
	}
	opened, err := live.Current(e.clock.now())
	if err == nil && changed {
		e.env.Log.Info("signing with another key", "purpose", opened.Entry.Purpose, "key_id", opened.Entry.KeyID)
	}
	return opened, err
}

// serve serves the keys: as a JSON Web Key Set, and as the signed key list, with which a client
// that knows one key can verify the others.
func (s *signer) serve(env *service.Env) {
	show := func(pattern, kind string, form func(*keyring.Ring) ([]byte, error)) {
		env.Routes.Handle(pattern, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			ring, err := s.list.now()
			var text []byte
			if err == nil {
				text, err = form(ring)
			}
			if err != nil {
				env.Log.Error("the key list cannot be served", "error", err)
				http.Error(w, "the key list cannot be read", http.StatusInternalServerError)
				return
			}
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Cache-Control", "public, max-age=60")
			_, _ = w.Write(text) // an error means that the client has left
		}))
	}
	show("GET /.well-known/jwks.json", keyring.JWKSType, (*keyring.Ring).JWKS)
	show("GET /v1/keys", "application/x-ndjson", func(r *keyring.Ring) ([]byte, error) { return r.Text(), nil })
}

// logKey returns the current key of the transparency log, with the earlier ones.
func (s *signer) logKey(origin string) tlog.LogKey {
	key := tlog.LogKey{Origin: origin, Private: s.log.Opened().Private}
	for _, k := range s.log.Keys()[1:] {
		key.Earlier = append(key.Earlier, k.Public())
	}
	return key
}

// noteSigner writes the id of the signing key to bucket seals before the key signs its first
// bundle.
func (e *exporter) noteSigner(ctx context.Context) error {
	if e.noted == e.keyID {
		return nil
	}
	return e.env.Retry.Do(ctx, "record the signing key", func() error {
		if err := e.confirm(ctx); err != nil {
			return err
		}
		if _, err := e.seals.Put(ctx, seal.SignerKey, []byte(e.keyID)); err != nil {
			return err
		}
		e.noted = e.keyID
		return nil
	})
}

// Continues returns an error if the tenant's bundles were signed before and there is no key file.
// With a new data directory an exporter would sign with a key that nobody knows, and the earlier
// bundles would be in another directory.
func Continues(ctx context.Context, env *service.Env, broker *stream.Client, keyFile string) error {
	if _, err := os.Stat(keyFile); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var before []byte
	err := env.Open(ctx, broker, func() error {
		seals, err := broker.Bucket(ctx, stream.Seals)
		if err == nil {
			before, _, err = seals.GetNewest(ctx, seal.SignerKey)
		}
		return err
	})
	if errors.Is(err, stream.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the id of the key that signed the earlier bundles: %w", err)
	}
	return fmt.Errorf("there is no key file %s, and the earlier bundles of this tenant were signed with key %s: "+
		"start with the data directory of the earlier exporter, which has its key and its bundles; "+
		"if that is lost, create a new key: plumbline keys new session --file %[1]s", keyFile, before)
}
