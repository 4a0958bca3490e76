package keystore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/events"
)

// Ledger publishes events to the operator's ledger (stream.Client).
type Ledger interface {
	AppendLedger(ctx context.Context, events ...ledger.Event) error
}

// Live is the current key of a slot. It follows a rotation by any process without a restart.
// Renew must be called by one goroutine; the other methods are safe for concurrent use.
type Live struct {
	slot   Slot
	ledger Ledger
	file   os.FileInfo // before the key was read; nil: the file did not exist
	opened atomic.Pointer[Opened]
	taken  chan struct{} // receives a value when a new key is adopted
}

// Follow opens the key in use, creates it where there is none, and follows rotations. It
// publishes each key to the ledger before the key signs.
func (s Slot) Follow(ctx context.Context, ledger Ledger) (*Live, error) {
	l := &Live{slot: s, ledger: ledger, taken: make(chan struct{}, 1)}
	if _, err := l.Renew(ctx); err != nil {
		return nil, err
	}
	return l, nil
}

// Renew adopts a key that was rotated, and reports whether there was one. After an error the
// previous key is still in use; the same call may be retried.
func (l *Live) Renew(ctx context.Context) (changed bool, err error) {
	file, err := os.Stat(l.slot.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("check the %s key: %w", l.slot.Purpose, err)
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
		event, err := events.SigningKey{Purpose: string(opened.Entry.Purpose), KeyID: opened.Entry.KeyID, PublicKey: opened.Entry.PublicKey}.Event()
		if err == nil {
			err = l.ledger.AppendLedger(ctx, event)
		}
		if err != nil {
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

// renewEvery is the interval at which the key is checked.
const renewEvery = time.Second

// Watch calls Renew regularly until ctx ends. It logs a failure once for each error text. After a
// failure the previous key stays in use.
func (l *Live) Watch(ctx context.Context, log *slog.Logger) error {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	logged := ""
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
			logged = ""
		case err.Error() != logged:
			logged = err.Error()
			log.Error("a new key cannot be used; the previous one still signs", "purpose", l.slot.Purpose, "error", err)
		}
		if changed {
			log.Info("signing with another key", "purpose", l.slot.Purpose, "key_id", l.Opened().Entry.KeyID)
		}
	}
}

// Taken returns a channel that receives a value after rotations were adopted; several may share
// one value.
func (l *Live) Taken() <-chan struct{} { return l.taken }

// Expose registers gauge plumbline_key_expiry_seconds of the purpose.
func (l *Live) Expose(metrics prometheus.Registerer) {
	metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "plumbline_key_expiry_seconds",
		Help:        "Seconds until the signing key in use may no longer sign; +Inf: no end is set.",
		ConstLabels: prometheus.Labels{"purpose": string(l.slot.Purpose)},
	}, func() float64 {
		until := l.Opened().Entry.NotAfter
		if until.IsZero() {
			return math.Inf(1)
		}
		return time.Until(until).Seconds()
	}))
}

// Opened returns the key in use, even outside its period of validity.
func (l *Live) Opened() *Opened { return l.opened.Load() }

// Keys returns all keys of the purpose on the list, the one in use first.
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

// Current returns the key in use if it may sign something dated now. Otherwise the error wraps
// keyring.ErrEarly or keyring.ErrLate.
func (l *Live) Current(now time.Time) (*Opened, error) {
	opened := l.opened.Load()
	if err := opened.Entry.ValidAt(now.Truncate(time.Second)); err != nil {
		return nil, fmt.Errorf("%w: create a new one with: plumbline keys rotate %s", err, opened.Entry.Purpose)
	}
	return opened, nil
}

// same reports whether a file is unchanged.
func same(now, before os.FileInfo) bool {
	return before != nil && os.SameFile(now, before) && now.ModTime().Equal(before.ModTime())
}
