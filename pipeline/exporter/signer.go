package exporter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/pipeline/keystore"
	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/tlog"
)

// signer holds the key that signs bundles. The key file is checked before each round, so a rotation
// needs no restart. With the zero signer the exporter keeps the key it was given.
type signer struct {
	session *keystore.Live
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
func followKey(ctx context.Context, env *service.Env, broker Broker, slot keystore.Slot) (*keystore.Live, error) {
	live, err := slot.Follow(ctx, service.PatientLedger{Env: env, Broker: broker})
	if err != nil {
		return nil, fmt.Errorf("%s key: %w", slot.Purpose, err)
	}
	if opened := live.Opened(); opened.Made {
		env.Log.Info("made a signing key", "purpose", slot.Purpose, "file", slot.Path, "key_id", opened.Entry.KeyID)
	}
	live.Expose(env.Metrics)
	return live, nil
}

func (e *exporter) openSigner(ctx context.Context, path string) (err error) {
	slot := keystore.Slot{Path: path, Purpose: keyring.Session}
	e.signer.list.path = slot.List()
	if e.signer.session, err = followKey(ctx, e.env, e.broker, slot); err == nil {
		opened := e.signer.session.Opened()
		e.key, e.keyID = opened.Private, opened.Entry.KeyID
	}
	return err
}

// renewKey adopts a rotated key. It waits while there is no key that may sign now, since
// verifiers would refuse its signatures.
func (e *exporter) renewKey(ctx context.Context) error {
	if e.signer.session == nil {
		return nil
	}
	return e.env.Retry.Do(ctx, "use the signing key", func() error {
		opened, err := renewed(ctx, e.env, e.clock, e.signer.session)
		if err != nil {
			return err
		}
		e.key, e.keyID = opened.Private, opened.Entry.KeyID
		if opened.Entry.ValidAt(e.clock.wall().Truncate(time.Second)) == nil && e.clock.correct() {
			e.env.Log.Warn("the clock of this machine was ahead; bundles that were sealed meanwhile are dated ahead, the next ones are not")
		}
		return nil
	})
}

// renewLogKey adopts a rotated key of the log, and fails while there is none that may sign now.
func (k *keeper) renewLogKey(ctx context.Context) error {
	if k.anchors.log == nil {
		return nil
	}
	k.key.Lock()
	defer k.key.Unlock()
	if _, err := renewed(ctx, k.env, k.clock, k.logKey); err != nil {
		return err
	}
	return k.anchors.log.Use(k.logSigner())
}

// followLogKey adopts a rotated key of the log soon: everyone must see a head that is signed by the key
// in use.
func (k *keeper) followLogKey(ctx context.Context) error {
	if k.anchors.log == nil {
		return nil
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := k.env.Retry.Do(ctx, "use the key of the transparency log", func() error { return k.renewLogKey(ctx) }); err != nil {
			return service.UnlessEnded(ctx, err)
		}
	}
}

// renewed returns the key in use if it may sign now. If the wall clock is earlier than the key, the
// clock was set back, and the exporter's time decides.
func renewed(ctx context.Context, env *service.Env, clock *clock, live *keystore.Live) (*keystore.Opened, error) {
	changed, err := live.Renew(ctx)
	if err != nil {
		return nil, err
	}
	opened, err := live.Current(clock.wall())
	if errors.Is(err, keyring.ErrEarly) {
		opened, err = live.Current(clock.look())
	}
	if err == nil && changed {
		env.Log.Info("signing with another key", "purpose", opened.Entry.Purpose, "key_id", opened.Entry.KeyID)
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

// logSigner returns the current key of the transparency log, with the earlier ones.
func (k *keeper) logSigner() tlog.LogKey {
	key := tlog.LogKey{Origin: k.cfg.logOrigin(), Private: k.logKey.Opened().Private}
	for _, earlier := range k.logKey.Keys()[1:] {
		key.Earlier = append(key.Earlier, earlier.Public())
	}
	return key
}

// noteSigner writes the id of the signing key to bucket seals before the key signs its first
// bundle. If another exporter signs with a key that this one does not know, this one waits: the key was
// rotated, and this process does not see its file yet.
func (e *exporter) noteSigner(ctx context.Context) error {
	alone := !e.shared // then no other process signs, and a key that was restored from a backup may sign again
	if alone && e.noted == e.keyID {
		return nil
	}
	return e.env.Retry.Do(ctx, "record the signing key", func() error {
		noted, _, err := e.seals.GetNewest(ctx, seal.SignerKey)
		switch {
		case err != nil && !errors.Is(err, stream.ErrNotFound):
			return err
		case err == nil && string(noted) == e.keyID:
			e.noted = e.keyID
			return nil
		case err == nil && !alone && !e.knows(string(noted)):
			if err := e.renewKey(ctx); err != nil || e.keyID == string(noted) {
				return err
			}
			return fmt.Errorf("another exporter signs with key %s, which the list of keys in %s does not have yet; if no other exporter runs, restart this one", noted, e.signer.list.path)
		}
		if err := e.source.Confirm(ctx); err != nil {
			return err
		}
		if _, err := e.seals.Put(ctx, seal.SignerKey, []byte(e.keyID)); err != nil {
			return err
		}
		e.noted = e.keyID
		return nil
	})
}

// everyPartition is what a process owns that works alone.
var everyPartition = func() (all [subject.Partitions]bool) {
	for p := range all {
		all[p] = true
	}
	return all
}()

// knows reports whether a key that signs bundles is on the list of keys. The key in use is the newest
// one on the list.
func (e *exporter) knows(keyID string) bool {
	if e.signer.session == nil {
		return false
	}
	return slices.ContainsFunc(e.signer.session.Keys(), func(k keyring.Key) bool { return k.KeyID == keyID })
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
