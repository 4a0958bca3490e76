package keystore

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/pipeline/keyfile"
)

// ListName is the file name of the key list in a directory of keys.
const ListName = "keys.jsonl"

// lockName is the name of the lock file of writers.
const lockName = ".keys.lock"

// Errors of Open, New and Rotate. Their errors wrap one of these, or are errors of the disk or
// the list.
var (
	ErrExists   = errors.New("a key exists already")
	ErrMissing  = errors.New("there is no key")
	ErrUnlisted = errors.New("the key in the file is not the one in use by the key list")
)

// Slot is the place of a purpose's key.
type Slot struct {
	Path    string // of the key file; the list is in the same directory
	Purpose keyring.Purpose

	step func(string) error // for tests: called before each step; an error ends the call there
}

// In returns the place of a purpose's key in a directory of keys.
func In(dir string, purpose keyring.Purpose) Slot {
	return Slot{Path: filepath.Join(dir, string(purpose)+".key"), Purpose: purpose}
}

// Period is the period of validity of a new key.
type Period struct {
	From    time.Time
	Until   time.Time     // zero: no end
	Overlap time.Duration // how long the previous key stays valid
}

// Opened is a key that is ready to sign.
type Opened struct {
	Private ed25519.PrivateKey
	Entry   keyring.Key // its entry in the list
	Ring    *keyring.Ring
	Made    bool // this call made it
}

// List returns the path of the key list.
func (s Slot) List() string { return filepath.Join(filepath.Dir(s.Path), ListName) }

func (s Slot) next() string { return s.Path + ".next" }

// Open returns the key in use, and creates it where there is none. It adds a key file that is
// older than the list to the list, without a beginning, and completes an interrupted rotation.
func (s Slot) Open(ctx context.Context, now time.Time) (*Opened, error) {
	return s.locked(ctx, func() (*Opened, error) {
		o, err := s.current(now)
		if errors.Is(err, ErrMissing) {
			return s.place(o, Period{From: now}, now)
		}
		return o, err
	})
}

// Load is like Open, but returns ErrMissing instead of creating a key.
func (s Slot) Load(ctx context.Context, now time.Time) (*Opened, error) {
	return s.locked(ctx, func() (*Opened, error) { return s.current(now) })
}

// New creates the first key of the purpose. It returns ErrExists if there is one. New and Rotate refuse a
// file, or a directory, of another user, whose service could not read the key.
func (s Slot) New(ctx context.Context, p Period, now time.Time) (*Opened, error) {
	if err := durable.CheckOwner(s.Path); err != nil {
		return nil, err
	}
	return s.locked(ctx, func() (*Opened, error) {
		o, err := s.current(now)
		if err == nil {
			return nil, fmt.Errorf("%w for %s: key %s in %s", ErrExists, s.Purpose, o.Entry.KeyID, s.Path)
		}
		if !errors.Is(err, ErrMissing) {
			return nil, err
		}
		return s.place(o, p, now)
	})
}

// Rotate replaces the key in use by a new one, whose list entry the old key signs. It returns
// ErrMissing if there is no key.
func (s Slot) Rotate(ctx context.Context, p Period, now time.Time) (*Opened, error) {
	if err := durable.CheckOwner(s.Path); err != nil {
		return nil, err
	}
	return s.locked(ctx, func() (*Opened, error) {
		o, err := s.current(now)
		if err != nil {
			return nil, err
		}
		return s.place(o, p, now)
	})
}

// current completes an interrupted rotation, then reads list and key file. Together with
// ErrMissing it returns the list.
func (s Slot) current(now time.Time) (*Opened, error) {
	ring, err := ReadList(s.List())
	if errors.Is(err, fs.ErrNotExist) {
		ring, err = new(keyring.Ring), nil
	}
	if err != nil {
		return nil, err
	}
	if err := s.finish(ring); err != nil {
		return nil, err
	}
	listed, isListed := ring.Current(s.Purpose)
	key, err := keyfile.Load(s.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && isListed:
		return nil, fmt.Errorf("%w: %s does not exist, and %s names key %s: put the file back; or move the list away and begin a new one, which no verifier has pinned yet",
			ErrUnlisted, s.Path, s.List(), listed.KeyID)
	case errors.Is(err, fs.ErrNotExist):
		return &Opened{Ring: ring}, fmt.Errorf("%w for %s: %s does not exist", ErrMissing, s.Purpose, s.Path)
	case err != nil:
		return nil, err
	case !isListed:
		return s.adopt(ring, key, now)
	}
	if id := aivs.KeyID(key.Public().(ed25519.PublicKey)); id != listed.KeyID {
		return nil, fmt.Errorf("%w: %s holds key %s, and %s names key %s", ErrUnlisted, s.Path, id, s.List(), listed.KeyID)
	}
	return &Opened{Private: key, Entry: listed, Ring: ring}, nil
}

// finish completes an interrupted rotation: a staged key that is on the list gets the key file's
// name; one that is not on the list is removed.
func (s Slot) finish(ring *keyring.Ring) error {
	key, err := keyfile.Load(s.next())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if listed, ok := ring.Current(s.Purpose); ok && listed.KeyID == aivs.KeyID(key.Public().(ed25519.PublicKey)) {
		return durable.Rename(s.next(), s.Path)
	}
	return durable.Remove(s.next())
}

// adopt adds a key that is older than the list to the list.
func (s Slot) adopt(ring *keyring.Ring, key ed25519.PrivateKey, now time.Time) (*Opened, error) {
	grown, err := ring.Add(keyring.Addition{Purpose: s.Purpose, Key: key, IssuedAt: now})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Path, err)
	}
	o, err := s.publish(grown, key)
	if err != nil {
		return nil, fmt.Errorf("%w: the key in %s is not on a list yet: make its directory writable and run plumbline keys show, which lists it", err, s.Path)
	}
	return o, nil
}

// place creates a new key and brings it into use. o is the present state: the previous key, if
// any, and the list.
func (s Slot) place(o *Opened, p Period, now time.Time) (*Opened, error) {
	if err := s.at("make"); err != nil {
		return nil, err
	}
	key, err := keyfile.Create(s.next())
	if err != nil {
		return nil, err
	}
	if err := s.at("list"); err != nil {
		return nil, err
	}
	grown, err := o.Ring.Add(keyring.Addition{Purpose: s.Purpose, Key: key, Previous: o.Private,
		IssuedAt: now, NotBefore: p.From, NotAfter: p.Until, Retire: p.From.Add(p.Overlap)})
	if err != nil {
		return nil, errors.Join(err, durable.Remove(s.next()))
	}
	made, err := s.publish(grown, key)
	if err != nil {
		return nil, err
	}
	if err := s.at("name"); err != nil {
		return nil, err
	}
	made.Made = true
	return made, durable.Rename(s.next(), s.Path)
}

// publish writes the list.
func (s Slot) publish(ring *keyring.Ring, key ed25519.PrivateKey) (*Opened, error) {
	if err := durable.WriteFile(s.List(), ring.Text(), 0o644); err != nil {
		return nil, fmt.Errorf("key list: %w", err)
	}
	entry, _ := ring.Current(s.Purpose)
	return &Opened{Private: key, Entry: entry, Ring: ring}, nil
}

func (s Slot) at(step string) error {
	if s.step == nil {
		return nil
	}
	return s.step(step)
}

// ReadList reads a key list.
func ReadList(path string) (*keyring.Ring, error) {
	text, err := durable.ReadPlain(path, keyring.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("read the key list: %w", err)
	}
	if durable.Blank(text) {
		return nil, fmt.Errorf("the key list %s is empty or contains only zero bytes, probably after a loss of power: restore it from a backup; "+
			"if nothing was signed yet, remove it: a list of the present keys is then created", path)
	}
	ring, err := keyring.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return ring, nil
}

// Permit returns nil if a key file given by its name may sign for the slot's purpose: there is no
// list next to it, or the list does not have the key with another purpose.
func (s Slot) Permit(key ed25519.PrivateKey) error {
	ring, err := ReadList(s.List())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	listed, ok := ring.Find(key.Public().(ed25519.PublicKey))
	if ok && listed.Purpose != s.Purpose {
		return fmt.Errorf("%w: %s holds a %s key, and a key has one purpose: create one with plumbline keys new %s", keyring.ErrPurpose, s.Path, listed.Purpose, s.Purpose)
	}
	return nil
}

// lockWait is long: the lock is never held for longer than a few writes take.
const lockWait = 10 * time.Second

// locked runs do while it holds the directory's lock, and creates the directory. A directory that
// is not writable, such as a mounted secret, needs no lock: its key and list are read, and a call
// that has to write fails.
func (s Slot) locked(ctx context.Context, do func() (*Opened, error)) (o *Opened, err error) {
	dir := filepath.Dir(s.Path)
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("directory of keys: %w", err)
	}
	waiting, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	lock, err := durable.Await(waiting, filepath.Join(dir, lockName), "keys")
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
		return do()
	}
	if err != nil {
		return nil, fmt.Errorf("directory of keys: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	return do()
}
