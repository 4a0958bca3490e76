package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"

	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/keystore"
	"github.com/plumbline/plumbline/pipeline/opledger"
)

// readKeys reads the key list and checks all its lines.
func (c *check) readKeys(context.Context) error {
	if c.KeyList == "" {
		return nil
	}
	ring, err := keystore.ReadList(c.KeyList)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return c.differ(Difference{Kind: KeyListBroken, File: keystore.ListName}, "%v", err)
	}
	c.keys, c.count().Keys = ring, uint64(len(ring.Keys()))
	return nil
}

// announcedKey compares the key that an entry of the ledger announces with the list. A key of any
// purpose is on the list before the entry is written, and stays on it.
func (l *ledgerCheck) announcedKey(e *opledger.Placed, event *opledger.Event) error {
	var said events.SigningKey
	if json.Unmarshal(event.Data, &said) != nil || said.Kind != events.KindSigningKey {
		return nil
	}
	if e.At.After(l.summary.StartedAt) { // the list was read before
		l.count().UnderWay++
		return nil
	}
	d := aboutEntry(KeyUnlisted, e)
	d.File = keystore.ListName
	if l.keys == nil {
		if l.summary.ByKind[KeyListBroken] > 0 || l.KeyList == "" {
			return nil
		}
		return l.differ(d, "the ledger announces the %s key %s, and there is no key list", said.Purpose, said.KeyID)
	}
	for _, key := range l.keys.Keys() {
		if key.KeyID != said.KeyID {
			continue
		}
		if string(key.Purpose) == said.Purpose && strings.EqualFold(key.PublicKey, said.PublicKey) {
			return nil
		}
		return l.differ(d, "the ledger announces key %s for %s, the key list has it for %s", said.KeyID, said.Purpose, key.Purpose)
	}
	return l.differ(d, "the ledger announces the %s key %s, and the key list does not name it", said.Purpose, said.KeyID)
}
