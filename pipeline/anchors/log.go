package anchors

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/pipeline/durable"
)

// Log is an append-only log of bundles in a directory of its own. It keeps some 40
// bytes of memory for each leaf. Its methods may be called from any goroutine.
type Log struct {
	dir    string
	origin string
	signer note.Signer
	lock   *durable.Lock

	mu   sync.Mutex
	view View
	contents
	unsure bool // what checkpoint is on disk: writing one failed
}

// LogKey signs a log's checkpoints.
type LogKey struct {
	Origin  string // the log's name: one word, without '+'; a host and path of the operator's own
	Private ed25519.PrivateKey
	Earlier []ed25519.PublicKey // that signed before; the last checkpoint may be by one of them
}

// verifiers are all keys of the log, the present one first.
func (k *LogKey) verifiers() ([]note.Verifier, error) {
	var found []note.Verifier
	for _, public := range append([]ed25519.PublicKey{k.Private.Public().(ed25519.PublicKey)}, k.Earlier...) {
		vkey, err := anchor.VerifierKey(k.Origin, public)
		if err != nil {
			return nil, err
		}
		verifier, err := anchor.ParseVerifier(vkey)
		if err != nil {
			return nil, err
		}
		found = append(found, verifier)
	}
	return found, nil
}

// OpenLog opens the log in a directory, and makes it where there is none. It reads
// all of it: a second or two for a million leaves. It refuses a log that another process
// writes, and one whose files are not what the checkpoint says (ErrTampered).
func OpenLog(dir string, key LogKey) (*Log, error) {
	signer, err := anchor.NewSigner(key.Origin, key.Private)
	if err != nil {
		return nil, err
	}
	keys, err := key.verifiers()
	if err != nil {
		return nil, err
	}
	if err := durable.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("transparency log: %w", err)
	}
	l := &Log{dir: dir, origin: key.Origin, signer: signer, view: View{keys: keys}}
	if l.lock, err = durable.Acquire(filepath.Join(dir, ".lock"), "exporter"); err != nil {
		return nil, fmt.Errorf("transparency log: %w", err)
	}
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("transparency log in %s: %w", dir, errors.Join(err, l.Close()))
	}
	return l, nil
}

func (l *Log) open() error {
	if _, err := os.Stat(filepath.Join(l.dir, checkpointName)); errors.Is(err, fs.ErrNotExist) {
		if err := l.begin(); err != nil {
			return err
		}
	}
	if err := l.view.open(l.dir, os.O_RDWR); err != nil {
		return err
	}
	return l.load()
}

// begin makes the files of a log of no leaf. Leaves without a checkpoint are what
// is left of another log.
func (l *Log) begin() error {
	for _, name := range []string{leavesName, hashesName} {
		path := filepath.Join(l.dir, name)
		if info, err := os.Stat(path); err == nil && info.Size() > 0 {
			return fmt.Errorf("%w: %s is there, and no checkpoint", ErrTampered, path)
		}
		if err := durable.WriteFile(path, nil, 0o644); err != nil {
			return err
		}
	}
	return l.commit(0, nil)
}

// load reads the log up to its checkpoint. What follows was being appended when the
// process ended; no proof of it was given.
func (l *Log) load() error {
	c, err := l.view.read()
	if err != nil {
		return err
	}
	l.contents = *c
	return errors.Join(l.view.leaves.Truncate(c.length), l.view.hashes.Truncate(l.storedBytes()))
}

// storedBytes is how much of the file of hashes is the log.
func (l *Log) storedBytes() int64 { return tlog.StoredHashCount(l.view.head.Size) * tlog.HashSize }

// Close gives the log up.
func (l *Log) Close() error { return errors.Join(l.view.Close(), l.lock.Release()) }

// Checkpoint returns the signed head of the log.
func (l *Log) Checkpoint() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.view.signed
}

// CheckConsistency is that of a View.
func (l *Log) CheckConsistency(signed []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.view.CheckConsistency(signed)
}

func prefixOf(hash tlog.Hash) uint64 { return binary.BigEndian.Uint64(hash[:8]) }
