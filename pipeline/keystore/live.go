package keystore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/events"
)

// Ledger is where the operator's ledger is told of keys (stream.Client).
type Ledger interface {
	AppendLedger(ctx context.Context, events ...ledger.Event) error
}

// Live is the key in use of a slot, as it is now: a rotation, by whatever process,
// is taken up without a restart. Renew is for one goroutine, the rest for any.
type Live struct {
	slot   Slot
	ledger Ledger
	file   os.FileInfo // before the key was read; nil: it was not there
	opened atomic.Pointer[Opened]
	taken  chan struct{} // holds something once a key was taken up
}

// Follow opens the key in use, made now where there is none, and follows it. Each
// key is in the ledger before it signs.
func (s Slot) Follow(ctx context.Context, ledger Ledger) (*Live, error) {
	l := &Live{slot: s, ledger: ledger, taken: make(chan struct{}, 1)}
	if _, err := l.Renew(ctx); err != nil {
		return nil, err
	}
	return l, nil
}

// Renew takes up a key that was rotated, and tells whether there is one. After an
// error the key before is still in use; the same call may be made again.
func (l *Live) Renew(ctx context.Context) (changed bool, err error) {
	file, err := os.Stat(l.slot.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("look at the %s key: %w", l.slot.Purpose, err)
	}
	before := l.opened.Load()
	if before != nil && file != nil && same(file, l.file) {
		return false, nil
	}
	opened, err := l.slot.Open(ctx, time.Now())
	if err != nil {
		return false, err
	}
	if changed = before == nil || before.Entry.KeyID != opened.Entry.KeyID; changed {
		if err := l.announce(ctx, opened); err != nil {
			return false, err
		}
	}
	l.opened.Store(opened)
	l.file = file
	if changed && before != nil {
		select {
		case l.taken <- struct{}{}:
		default:
		}
	}
	return changed, nil
}

// renewEvery is how old the knowledge of a key may become.
const renewEvery = time.Second

// Watch renews until ctx ends. What keeps a key from being taken up is logged, once
// for each reason; the key before stays in use.
func (l *Live) Watch(ctx context.Context, log *slog.Logger) error {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	told := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		changed, err := l.Renew(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			told = ""
		case err.Error() != told:
			told = err.Error()
			log.Error("a key cannot be taken up, the one before signs", "purpose", l.slot.Purpose, "error", err)
		}
		if changed {
			log.Info("signing with another key", "purpose", l.slot.Purpose, "key_id", l.Opened().Entry.KeyID)
		}
	}
}

// Taken tells of each rotation that was taken up since it was last asked, once.
func (l *Live) Taken() <-chan struct{} { return l.taken }

func (l *Live) announce(ctx context.Context, opened *Opened) error {
	entry := &opened.Entry
	event, err := events.SigningKey{Purpose: string(entry.Purpose), KeyID: entry.KeyID, PublicKey: entry.PublicKey}.Event()
	if err != nil {
		return err
	}
	return l.ledger.AppendLedger(ctx, event)
}

// Opened returns the key in use, whatever its time.
func (l *Live) Opened() *Opened { return l.opened.Load() }

// Keys are all keys of the purpose that are on the list, the one in use first.
func (l *Live) Keys() []keyring.Key {
	opened := l.Opened()
	found := []keyring.Key{opened.Entry}
	for _, k := range opened.Ring.Keys() {
		if k.Purpose == l.slot.Purpose && k.KeyID != opened.Entry.KeyID {
			found = append(found, k)
		}
	}
	return found
}

// Current returns the key in use if it may sign something dated now: the error
// wraps keyring.ErrEarly or keyring.ErrLate.
func (l *Live) Current(now time.Time) (*Opened, error) {
	opened := l.opened.Load()
	if err := opened.Entry.ValidAt(now.Truncate(time.Second)); err != nil {
		return nil, fmt.Errorf("%w: make another with: plumbline keys rotate %s", err, opened.Entry.Purpose)
	}
	return opened, nil
}

// same tells whether a file is the one that it was.
func same(now, before os.FileInfo) bool {
	return before != nil && os.SameFile(now, before) && now.ModTime().Equal(before.ModTime())
}
