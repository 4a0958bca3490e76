package keyring

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/plumbline/plumbline/aivs"
)

// MaxBytes is the largest accepted key list: several hundred rotations.
const MaxBytes = 32 << 20

// Ring is a key list all of whose lines were checked. The zero value has no lines.
type Ring struct {
	last List
	text []byte
}

// Parse reads keys.jsonl. Its error names the first line that breaks a rule (see the package
// comment).
func Parse(text []byte) (*Ring, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("key list: %d bytes, want at most %d", len(text), MaxBytes)
	}
	r := &Ring{text: text}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		next, err := parseLine(line)
		if err == nil {
			err = r.last.mayBecome(next)
		}
		if err != nil {
			return nil, fmt.Errorf("key list, line %d: %w", number, err)
		}
		r.last = *next
	}
	if number == 0 {
		return nil, errors.New("key list: it is empty")
	}
	return r, nil
}

// parseLine reads a line and requires its only accepted form. A reader with other parsing rules
// (about duplicate names, say) therefore reads the same values.
func parseLine(line []byte) (*List, error) {
	l := new(List)
	if err := json.Unmarshal(line, l, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	form, err := l.line()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(form, line) {
		return nil, errors.New("not written as a key list is, or cut off")
	}
	return l, l.checkKeys()
}

// checkKeys checks a list on its own.
func (l *List) checkKeys() error {
	if l.Type != listType {
		return fmt.Errorf("its type is %.80q, want %s", l.Type, listType)
	}
	if !toTheSecond(l.IssuedAt) || l.IssuedAt.IsZero() {
		return errors.New("issued_at is not a time in UTC, to the second")
	}
	if len(l.Keys) == 0 {
		return errors.New("no keys")
	}
	seen := map[string]bool{}
	for i := range l.Keys {
		if err := l.Keys[i].check(); err != nil {
			return err
		}
		if seen[l.Keys[i].KeyID] {
			return fmt.Errorf("key %s is listed twice: a key has one purpose", l.Keys[i].KeyID)
		}
		seen[l.Keys[i].KeyID] = true
	}
	return nil
}

func (k *Key) check() error {
	public, err := hex.DecodeString(k.PublicKey)
	if err != nil || len(public) != ed25519.PublicKeySize {
		return fmt.Errorf("public_key %.80q is not %d hexadecimal digits", k.PublicKey, 2*ed25519.PublicKeySize)
	}
	if aivs.SmallOrder(public) {
		return fmt.Errorf("public_key %.80q is of small order: it accepts signatures that nobody made", k.PublicKey)
	}
	if want := newKey(public, k.Purpose); want.KeyID != k.KeyID || want.PublicKey != k.PublicKey {
		return fmt.Errorf("key_id %.80q is not that of its public key, %s", k.KeyID, want.KeyID)
	}
	if !slices.Contains(Purposes(), k.Purpose) {
		return fmt.Errorf("key %s: purpose %.80q: want one of %v", k.KeyID, k.Purpose, Purposes())
	}
	if !toTheSecond(k.NotBefore) || !toTheSecond(k.NotAfter) {
		return fmt.Errorf("%s: its validity is not in UTC, to the second", k.describe())
	}
	if !k.NotAfter.IsZero() && k.NotAfter.Before(k.NotBefore) {
		return fmt.Errorf("%s: not_after is before not_before", k.describe())
	}
	return nil
}

func toTheSecond(t time.Time) bool {
	return t.Equal(t.Truncate(time.Second)) && t.Location() == time.UTC
}

// mayBecome returns nil if next may follow l. l is the zero list before the first line.
func (l *List) mayBecome(next *List) error {
	if next.Version != l.Version+1 {
		return fmt.Errorf("version %d, want %d: lines are missing or out of order", next.Version, l.Version+1)
	}
	if next.IssuedAt.Before(l.IssuedAt) {
		return errors.New("it was issued before the line above it")
	}
	if len(next.Keys) != len(l.Keys)+1 {
		return fmt.Errorf("%d keys, want the %d of the line above and one more", len(next.Keys), len(l.Keys))
	}
	added := &next.Keys[len(l.Keys)]
	for i := range l.Keys {
		if err := l.Keys[i].mayBecome(&next.Keys[i], added.Purpose); err != nil {
			return err
		}
	}
	before := l.current(added.Purpose)
	if before == nil {
		return next.signedBy(added)
	}
	if next.find(before.Public()).NotAfter.IsZero() {
		return fmt.Errorf("%s is followed by %s and has no end", before.describe(), added.KeyID)
	}
	if added.NotBefore.IsZero() {
		return fmt.Errorf("%s follows another and has no beginning", added.describe())
	}
	return next.signedBy(before, added)
}

// mayBecome returns nil if a line that adds a key of purpose adds may list the existing key k as
// next: unchanged, or, for a key of that purpose, with an earlier end.
func (k *Key) mayBecome(next *Key, adds Purpose) error {
	sooner := k.NotAfter.IsZero() || next.NotAfter.Before(k.NotAfter)
	unended := *next
	unended.NotAfter = k.NotAfter
	switch {
	case unended != *k:
		return fmt.Errorf("%s was changed", k.describe())
	case next.NotAfter.Equal(k.NotAfter):
		return nil
	case k.Purpose != adds:
		return fmt.Errorf("%s was ended by a line that adds a %s key", k.describe(), adds)
	case !sooner || next.NotAfter.IsZero():
		return fmt.Errorf("%s: its validity was extended; a line can only end a key earlier", k.describe())
	}
	return nil
}

// Keys returns all keys in the order in which they were added.
func (r *Ring) Keys() []Key { return slices.Clone(r.last.Keys) }

// Current returns the key of a purpose that was added last.
func (r *Ring) Current(purpose Purpose) (Key, bool) {
	k := r.last.current(purpose)
	if k == nil {
		return Key{}, false
	}
	return *k, true
}

// Find returns the entry of a key, if it is listed.
func (r *Ring) Find(public ed25519.PublicKey) (Key, bool) {
	k := r.last.find(public)
	if k == nil {
		return Key{}, false
	}
	return *k, true
}

// Text returns the complete keys.jsonl.
func (r *Ring) Text() []byte { return bytes.Clone(r.text) }
