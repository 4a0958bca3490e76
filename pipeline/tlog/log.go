package tlog

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/pipeline/durable"
)

// Log is an append-only log of bundles in its own directory. It uses some 40 bytes of memory for
// each leaf. Its methods are safe for concurrent use.
type Log struct {
	dir    string
	origin string
	lock   *durable.Lock

	mu   sync.Mutex
	keys logKeys
	view View
	contents
	unsure   bool     // writing the checkpoint failed, so its state on disk is unknown
	cosigned cosigned // the newest checkpoint that witnesses have cosigned
}

// LogKey signs a log's checkpoints.
type LogKey struct {
	Origin  string // the log's name: one word without '+', a host and path that belong to the operator
	Private ed25519.PrivateKey
	Earlier []ed25519.PublicKey // keys that signed before; the last checkpoint may be by one of them
}

// logKeys holds all keys of a log, the one in use first.
type logKeys struct {
	text      string // see Verifiers
	verifiers []note.Verifier
	signer    note.Signer
}

func (k *LogKey) open() (all logKeys, err error) {
	if all.signer, err = anchor.NewSigner(k.Origin, k.Private); err != nil {
		return all, err
	}
	current := k.Private.Public().(ed25519.PublicKey)
	all.verifiers, all.text, err = Verifiers(k.Origin, append([]ed25519.PublicKey{current}, k.Earlier...))
	return all, err
}

// Verifiers returns the verifiers of a log's keys, and the keys' text: one line each, in the form
// of anchor.VerifierKey.
func Verifiers(origin string, keys []ed25519.PublicKey) (verifiers []note.Verifier, text string, err error) {
	for _, public := range keys {
		vkey, err := anchor.VerifierKey(origin, public)
		if err != nil {
			return nil, "", err
		}
		verifier, err := anchor.ParseVerifier(vkey)
		if err != nil {
			return nil, "", err
		}
		verifiers, text = append(verifiers, verifier), text+vkey+"\n"
	}
	return verifiers, text, nil
}

// OpenLog opens the log in a directory, and creates it where there is none. It reads the whole
// log: a second or two for a million leaves. kept is what other places know of the log. OpenLog
// refuses a log that another process writes, a log whose files disagree with its checkpoint
// (ErrTampered), and a log that is not a continuation of what was kept (ErrNotKept), also where
// the log is missing.
func OpenLog(dir string, key LogKey, kept ...*anchor.Checkpoint) (*Log, error) {
	keys, err := key.open()
	if err != nil {
		return nil, err
	}
	if err := durable.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("transparency log: %w", err)
	}
	l := &Log{dir: dir, origin: key.Origin, keys: keys, view: View{keys: keys.verifiers}}
	if l.lock, err = durable.Acquire(filepath.Join(dir, ".lock"), "exporter"); err != nil {
		return nil, fmt.Errorf("transparency log: %w", err)
	}
	if err := l.open(kept); err != nil {
		return nil, fmt.Errorf("transparency log in %s: %w", dir, errors.Join(err, l.Close()))
	}
	return l, nil
}

// ErrNotKept is wrapped by the error about a log that is not a continuation of a checkpoint kept
// elsewhere.
var ErrNotKept = errors.New("this is not a continuation of the log that others have seen")

func (l *Log) open(kept []*anchor.Checkpoint) error {
	if _, err := os.Stat(filepath.Join(l.dir, checkpointName)); errors.Is(err, fs.ErrNotExist) {
		for _, c := range kept {
			if c.Size > 0 {
				return fmt.Errorf("%w: there is no log here, and it had %d leaves", ErrNotKept, c.Size)
			}
		}
		if err := l.begin(); err != nil {
			return err
		}
	}
	if err := l.view.open(l.dir, os.O_RDWR); err != nil {
		return err
	}
	found, err := l.view.read()
	if err != nil {
		return err
	}
	for _, c := range kept {
		if err := l.view.GoesOnFrom(c); err != nil {
			return fmt.Errorf("%w: %w", ErrNotKept, err)
		}
	}
	if err := l.loadCosigned(); err != nil {
		return err
	}
	l.contents = *found
	// Remove what follows the checkpoint in the files. Those bytes were being appended when the
	// process ended; no proof of them was given. A log that is refused is left unchanged: if its
	// checkpoint is an old one, those bytes are the end of the newer log.
	if err := errors.Join(l.view.leaves.Truncate(l.length), l.view.hashes.Truncate(l.storedBytes())); err != nil {
		return err
	}
	return l.signHead()
}

// begin creates the files of an empty log. It refuses leaves without a checkpoint, which are what
// is left of another log.
func (l *Log) begin() error {
	for _, name := range []string{leavesName, hashesName} {
		path := filepath.Join(l.dir, name)
		if info, err := os.Stat(path); err == nil && info.Size() > 0 {
			return fmt.Errorf("%w: %s exists without a checkpoint", ErrTampered, path)
		}
		if err := durable.WriteFile(path, nil, 0o644); err != nil {
			return err
		}
	}
	return l.commit(0, nil)
}

// Use switches to another key, with the one before it in Earlier, or keeps the same. It signs the
// head again, since everyone must see a head signed by the key in use. After an error the same
// call may be retried.
func (l *Log) Use(key LogKey) error {
	key.Origin = l.origin
	keys, err := key.open()
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys, l.view.keys = keys, keys.verifiers
	if err := l.signHead(); err != nil {
		return fmt.Errorf("transparency log: %w", err)
	}
	return nil
}

// signHead signs the head unless the key in use has signed it.
func (l *Log) signHead() error {
	if _, err := anchor.OpenCheckpoint(l.view.signed, l.view.keys[0]); err == nil {
		return nil
	}
	return l.commit(l.view.head.Size, nil)
}

// storedBytes returns how many bytes of the file of hashes belong to the log.
func (l *Log) storedBytes() int64 { return tlog.StoredHashCount(l.view.head.Size) * tlog.HashSize }

// Close closes the files and releases the lock.
func (l *Log) Close() error { return errors.Join(l.view.Close(), l.lock.Release()) }

// Keys returns the log's keys, one line each (anchor.VerifierKey), the one in use first.
func (l *Log) Keys() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.keys.text
}

// Proves reports whether a proof proves the leaf, by any of the log's keys.
func (l *Log) Proves(proof *anchor.Proof, leaf []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.keys.verifiers, func(key note.Verifier) bool {
		_, err := proof.Verify(leaf, key)
		return err == nil
	})
}

// Head returns the log's size and root.
func (l *Log) Head() anchor.Checkpoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.view.Head()
}

// Checkpoint returns the signed head of the log, with the cosignatures on it.
func (l *Log) Checkpoint() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cosigned.head == l.view.head {
		return slices.Concat(l.view.signed, anchor.Lines(l.cosigned.lines))
	}
	return l.view.signed
}

func prefixOf(hash tlog.Hash) uint64 { return binary.BigEndian.Uint64(hash[:8]) }
