package keystore

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/pipeline/keyfile"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// use opens the key as a service does. It requires that the key is on the list, the last of its
// purpose, and that no staged file is left.
func use(t *testing.T, s Slot, at time.Time) *Opened {
	t.Helper()
	o, err := s.Open(context.Background(), at)
	if err != nil {
		t.Fatal(err)
	}
	ring, err := ReadList(s.List())
	if err != nil {
		t.Fatal(err)
	}
	public := o.Private.Public().(ed25519.PublicKey)
	if listed, ok := ring.Current(s.Purpose); !ok || listed.KeyID != aivs.KeyID(public) {
		t.Errorf("key %s is in use, the list names %v", aivs.KeyID(public), listed)
	}
	if file, err := keyfile.Load(s.Path); err != nil || !file.Equal(o.Private) {
		t.Errorf("the file holds another key, or none: %v", err)
	}
	if _, err := os.Stat(s.next()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a staged key is left over: %v", err)
	}
	return o
}

func TestOpenCreatesAKeyOnce(t *testing.T) {
	s := In(filepath.Join(t.TempDir(), "keys"), keyring.Session)
	first := use(t, s, now)
	second := use(t, s, now.Add(time.Hour))
	if !first.Made || second.Made || !first.Private.Equal(second.Private) || !first.Entry.NotBefore.Equal(now) {
		t.Errorf("first %+v, second %+v", first.Entry, second.Entry)
	}
	if _, err := s.New(context.Background(), Period{From: now}, now); !errors.Is(err, ErrExists) {
		t.Errorf("New with a key in place: %v", err)
	}
	info, err := os.Stat(s.Path)
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() != 32 {
		t.Errorf("key file: %v, %v", info, err)
	}
}

// The error about a list that a loss of power left blank names the list and a remedy that works.
func TestBlankListIsNamed(t *testing.T) {
	s := In(filepath.Join(t.TempDir(), "keys"), keyring.Session)
	first := use(t, s, now)
	for _, left := range []string{"", "\x00\x00"} {
		if err := os.WriteFile(s.List(), []byte(left), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := s.Open(context.Background(), now)
		if err == nil || !strings.Contains(err.Error(), s.List()) || !strings.Contains(err.Error(), "backup") || !strings.Contains(err.Error(), "remove it") {
			t.Errorf("%q: %v", left, err)
		}
	}
	if err := os.Remove(s.List()); err != nil {
		t.Fatal(err)
	}
	if again := use(t, s, now); !again.Private.Equal(first.Private) {
		t.Error("another key is in use")
	}
}

func TestNothingToLoadOrRotate(t *testing.T) {
	s := In(t.TempDir(), keyring.Session)
	if _, err := s.Load(context.Background(), now); !errors.Is(err, ErrMissing) {
		t.Errorf("load: %v", err)
	}
	if _, err := s.Rotate(context.Background(), Period{From: now}, now); !errors.Is(err, ErrMissing) {
		t.Errorf("rotate: %v", err)
	}
}

// A crash before each step of creating or rotating a key leaves the previous or the next key, and
// none that is not on the list.
func TestCrashAtEachStep(t *testing.T) {
	crash := errors.New("crash")
	for _, rotates := range []bool{false, true} {
		for _, step := range []string{"make", "list", "name"} {
			s := In(t.TempDir(), keyring.Session)
			var before *Opened
			if rotates {
				before = use(t, s, now)
			}
			s.step = func(at string) error {
				if at == step {
					return crash
				}
				return nil
			}
			act := s.New
			if rotates {
				act = s.Rotate
			}
			if _, err := act(context.Background(), Period{From: now.Add(time.Hour)}, now.Add(time.Hour)); !errors.Is(err, crash) {
				t.Fatalf("%s: %v", step, err)
			}
			s.step = nil
			after := use(t, s, now.Add(2*time.Hour))
			listed := step == "name"
			if rotates && after.Private.Equal(before.Private) == listed {
				t.Errorf("crash before %q: the key changed: %t", step, !after.Private.Equal(before.Private))
			}
			want := 1
			if rotates && listed {
				want = 2
			}
			if len(after.Ring.Keys()) != want {
				t.Errorf("crash before %q: %d keys are listed, want %d", step, len(after.Ring.Keys()), want)
			}
			again, err := s.Rotate(context.Background(), Period{From: now.Add(3 * time.Hour)}, now.Add(3*time.Hour))
			if err != nil || !use(t, s, now.Add(4*time.Hour)).Private.Equal(again.Private) {
				t.Errorf("crash before %q: it cannot be rotated after: %v", step, err)
			}
		}
	}
}

func TestRotateReplacesTheKey(t *testing.T) {
	s := In(t.TempDir(), keyring.Session)
	first := use(t, s, now)
	pins := []ed25519.PublicKey{first.Entry.Public()}
	for i := 1; i <= 4; i++ {
		at := now.AddDate(0, i, 0)
		o, err := s.Rotate(context.Background(), Period{From: at, Until: at.AddDate(1, 0, 0), Overlap: time.Hour}, at)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Ring.Accept(pins, o.Private.Public().(ed25519.PublicKey), keyring.Session, at); err != nil {
			t.Errorf("rotation %d: %v", i, err)
		}
	}
	o := use(t, s, now.AddDate(1, 0, 0))
	if err := o.Ring.Accept(pins, pins[0], keyring.Session, now.AddDate(0, 1, 0).Add(2*time.Hour)); !errors.Is(err, keyring.ErrLate) {
		t.Errorf("the first key after its overlap: %v", err)
	}
}

func TestOlderKeyIsListed(t *testing.T) {
	s := In(t.TempDir(), keyring.Session)
	old, err := keyfile.Create(s.Path)
	if err != nil {
		t.Fatal(err)
	}
	o := use(t, s, now)
	if !o.Private.Equal(old) || !o.Entry.NotBefore.IsZero() || o.Made {
		t.Errorf("%+v", o.Entry)
	}
	if err := os.Link(s.Path, filepath.Join(filepath.Dir(s.Path), "micro.key")); err != nil {
		t.Fatal(err)
	}
	if _, err := In(filepath.Dir(s.Path), keyring.Micro).Open(context.Background(), now); err == nil || !strings.Contains(err.Error(), "one purpose") {
		t.Errorf("the same key for something else: %v", err)
	}
}

func TestMismatchedKeyAndList(t *testing.T) {
	open := func(break_ func(s Slot) error) error {
		s := In(t.TempDir(), keyring.Session)
		use(t, s, now)
		if err := break_(s); err != nil {
			t.Fatal(err)
		}
		_, err := s.Open(context.Background(), now)
		return err
	}
	if err := open(func(s Slot) error { return os.Remove(s.Path) }); !errors.Is(err, ErrUnlisted) {
		t.Errorf("the key is gone: %v", err)
	}
	if err := open(func(s Slot) error { return os.WriteFile(s.Path, bytes.Repeat([]byte{1}, 32), 0o600) }); !errors.Is(err, ErrUnlisted) {
		t.Errorf("another key: %v", err)
	}
	if err := open(func(s Slot) error { return os.WriteFile(s.List(), []byte("{}\n"), 0o600) }); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("no list: %v", err)
	}
	if err := open(func(s Slot) error { return os.Chmod(s.Path, 0o644) }); err == nil || !strings.Contains(err.Error(), "chmod") {
		t.Errorf("a key that others can read: %v", err)
	}
}

// Concurrent calls create one key.
func TestConcurrentOpen(t *testing.T) {
	s := In(t.TempDir(), keyring.Session)
	keys := make([]*Opened, 8)
	errs := make([]error, len(keys))
	var group sync.WaitGroup
	for i := range keys {
		group.Go(func() { keys[i], errs[i] = s.Open(context.Background(), now) })
	}
	group.Wait()
	for i := range keys {
		if errs[i] != nil || !keys[i].Private.Equal(keys[0].Private) {
			t.Errorf("%d: %v", i, errs[i])
		}
	}
}

// Root makes no key that the service, as another user, could not read.
func TestKeysOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory to another user")
	}
	dir := t.TempDir()
	if err := os.Chown(dir, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	_, err := In(filepath.Join(dir, "keys"), keyring.Session).New(t.Context(), Period{From: time.Now()}, time.Now())
	if err == nil || !strings.Contains(err.Error(), "belongs to user 12345") {
		t.Errorf("%v, want a refusal", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v; want nothing, not even a lock", left, err)
	}
}
