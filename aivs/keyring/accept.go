package keyring

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/aivs"
)

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
