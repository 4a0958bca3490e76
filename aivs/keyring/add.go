package keyring

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/plumbline/plumbline/aivs"
)

// Addition is a key that joins a ring. Times are cut to the second.
type Addition struct {
	Purpose   Purpose
	Key       ed25519.PrivateKey
	Previous  ed25519.PrivateKey // the purpose's current key; nil for the first
	IssuedAt  time.Time
	NotBefore time.Time // zero, for the first key of a purpose only: it was in use before
	NotAfter  time.Time // zero: no end
	Retire    time.Time // the end of the key before, unless it has one that is sooner
}

// Add returns the ring with one key more; the ring itself stays as it is.
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
			return nil, fmt.Errorf("add a key: %s must sign the line, and another key was given or none", before.describe())
		}
		before.retire(second(a.Retire))
		signers = append(signers, a.Previous)
	}
	next.Keys = append(next.Keys, added)
	for _, key := range append(signers, a.Key) {
		if err := next.sign(key); err != nil {
			return nil, fmt.Errorf("add a key: %w", err)
		}
	}
	return r.with(&next)
}

// with checks the new line as every reader will.
func (r *Ring) with(next *List) (*Ring, error) {
	line, err := next.line()
	if err != nil {
		return nil, fmt.Errorf("add a key: %w", err)
	}
	grown, err := Parse(slices.Concat(r.text, line))
	if err != nil {
		return nil, fmt.Errorf("add a key: %w", err)
	}
	return grown, nil
}

// retire ends a key, never before it began.
func (k *Key) retire(at time.Time) {
	if at.Before(k.NotBefore) {
		at = k.NotBefore
	}
	if k.NotAfter.IsZero() || at.Before(k.NotAfter) {
		k.NotAfter = at
	}
}

func second(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
