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
		return fmt.Errorf("%s is followed by %s and has no end (not_after)", before.describe(), added.KeyID)
	}
	if added.NotBefore.IsZero() {
		return fmt.Errorf("%s follows another key and has no beginning (not_before)", added.describe())
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

// Reasons why a key is not accepted. Every error of Accept wraps one of them.
var (
	ErrUnreached = errors.New("no pinned key leads to it")
	ErrPurpose   = errors.New("it has another purpose")
	ErrEarly     = errors.New("it was not valid yet")
	ErrLate      = errors.New("it was no longer valid")
)

// Accept returns nil if a key may have signed something dated at, for a reader who trusts the
// pinned keys. One of the pinned keys must be on the list with the purpose. By the rules of a Ring
// it then vouches for all keys of that purpose, and for no others: its own line lists the older
// ones, and the line of each newer one is signed by the key before it.
func (r *Ring) Accept(pins []ed25519.PublicKey, key ed25519.PublicKey, purpose Purpose, at time.Time) error {
	err := fmt.Errorf("%w: none of the pinned keys is on the key list", ErrUnreached)
	for _, pin := range pins {
		k := r.last.find(pin)
		if k == nil {
			continue
		}
		if k.Purpose == purpose {
			err = nil
			break
		}
		err = fmt.Errorf("%w: the pinned key %s is a %s key, not a %s key", ErrPurpose, k.KeyID, k.Purpose, purpose)
	}
	if err != nil {
		return err
	}
	k := r.last.find(key)
	switch {
	case k == nil:
		return fmt.Errorf("%w: key %s is not on the key list", ErrUnreached, aivs.KeyID(key))
	case k.Purpose != purpose:
		return fmt.Errorf("%w: key %s is a %s key, not a %s key", ErrPurpose, k.KeyID, k.Purpose, purpose)
	}
	return k.ValidAt(at)
}

// ValidAt returns nil if the given time is within the key's period, otherwise ErrEarly or
// ErrLate.
func (k *Key) ValidAt(at time.Time) error {
	switch {
	case at.Before(k.NotBefore):
		return fmt.Errorf("%w: %s is valid from %s, but this is dated %s", ErrEarly, k.describe(), text(k.NotBefore), text(at))
	case !k.NotAfter.IsZero() && at.After(k.NotAfter):
		return fmt.Errorf("%w: %s was valid until %s, but this is dated %s", ErrLate, k.describe(), text(k.NotAfter), text(at))
	}
	return nil
}

func text(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Addition describes a key to add to a ring. Times are truncated to the second.
type Addition struct {
	Purpose   Purpose
	Key       ed25519.PrivateKey
	Previous  ed25519.PrivateKey // the purpose's current key; nil for the first
	IssuedAt  time.Time
	NotBefore time.Time // zero only for the first key of a purpose, which was in use before
	NotAfter  time.Time // zero: no end
	Retire    time.Time // the end of the key before, unless that key has an earlier end
}

// Add returns a ring with one more key. The receiver does not change.
func (r *Ring) Add(a Addition) (*Ring, error) {
	if len(a.Key) != ed25519.PrivateKeySize {
		return nil, errors.New("add a key: no key")
	}
	added := newKey(a.Key.Public().(ed25519.PublicKey), a.Purpose)
	added.NotBefore, added.NotAfter = second(a.NotBefore), second(a.NotAfter)
	next := List{Type: listType, Version: r.last.Version + 1, IssuedAt: second(a.IssuedAt), Keys: slices.Clone(r.last.Keys)}
	var signers []ed25519.PrivateKey
	if before := next.current(a.Purpose); before != nil {
		if len(a.Previous) != ed25519.PrivateKeySize || aivs.KeyID(a.Previous.Public().(ed25519.PublicKey)) != before.KeyID {
			return nil, fmt.Errorf("add a key: %s must sign the line, but no key or another one was given", before.describe())
		}
		end := second(a.Retire)
		if end.Before(before.NotBefore) { // a key never ends before its beginning
			end = before.NotBefore
		}
		if before.NotAfter.IsZero() || end.Before(before.NotAfter) {
			before.NotAfter = end
		}
		signers = append(signers, a.Previous)
	}
	next.Keys = append(next.Keys, added)
	for _, key := range append(signers, a.Key) {
		if err := next.sign(key); err != nil {
			return nil, fmt.Errorf("add a key: %w", err)
		}
	}
	line, err := next.line()
	if err != nil {
		return nil, fmt.Errorf("add a key: %w", err)
	}
	grown, err := Parse(slices.Concat(r.text, line)) // the checks that every reader makes
	if err != nil {
		return nil, fmt.Errorf("add a key: %w", err)
	}
	return grown, nil
}

func second(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
