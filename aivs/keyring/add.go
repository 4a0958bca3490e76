package keyring

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/plumbline/plumbline/aivs"
)

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
		before.retire(second(a.Retire))
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

// retire sets the end of a key, never before its beginning.
func (k *Key) retire(at time.Time) {
	if at.Before(k.NotBefore) {
		at = k.NotBefore
	}
	if k.NotAfter.IsZero() || at.Before(k.NotAfter) {
		k.NotAfter = at
	}
}

func second(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
