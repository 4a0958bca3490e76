package keystore

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/durable"
)

var errAway = errors.New("the ledger is away")

// recorder is a ledger that records the events it receives.
type recorder struct {
	events []ledger.Event
	away   bool
}

func (l *recorder) AppendLedger(_ context.Context, events ...ledger.Event) error {
	if l.away {
		return errAway
	}
	l.events = append(l.events, events...)
	return nil
}

// names reports whether the newest event names the key.
func (l *recorder) names(id string) bool {
	last := l.events[len(l.events)-1]
	return last.Type == "META" && strings.Contains(string(last.Data), `"purpose":"micro","key_id":"`+id+`"`)
}

// A rotated key is adopted only once the ledger has its event. Each key has one event.
func TestRotationIsAdopted(t *testing.T) {
	slot, ledger := In(t.TempDir(), keyring.Micro), new(recorder)
	live, err := slot.Follow(t.Context(), ledger)
	if err != nil {
		t.Fatal(err)
	}
	first := live.Opened().Entry
	for range 3 {
		if changed, err := live.Renew(t.Context()); changed || err != nil {
			t.Fatalf("nothing was rotated: %v %v", changed, err)
		}
	}
	next, err := slot.Rotate(t.Context(), Period{From: time.Now(), Overlap: time.Hour}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ledger.away = true
	if _, err := live.Renew(t.Context()); !errors.Is(err, errAway) || live.Opened().Entry.KeyID != first.KeyID {
		t.Errorf("%v; it signs with %s before the ledger knows", err, live.Opened().Entry.KeyID)
	}
	ledger.away = false
	if changed, err := live.Renew(t.Context()); !changed || err != nil || !ledger.names(next.Entry.KeyID) || len(ledger.events) != 2 {
		t.Errorf("%v %v, %d events", changed, err, len(ledger.events))
	}
	select {
	case <-live.Taken():
	default:
		t.Error("Taken reports no rotation")
	}
	if keys := live.Keys(); len(keys) != 2 || keys[0].KeyID != next.Entry.KeyID || keys[1].KeyID != first.KeyID {
		t.Errorf("the keys are %+v", keys)
	}
	restarted, err := slot.Follow(t.Context(), ledger)
	if err != nil || restarted.Opened().Entry.KeyID != next.Entry.KeyID || !ledger.names(next.Entry.KeyID) {
		t.Errorf("after a restart: %v", err)
	}
}

// A key outside its period of validity signs nothing. If the new key's file is broken, the
// previous key stays in use.
func TestKeyOutsideItsPeriod(t *testing.T) {
	slot := In(t.TempDir(), keyring.Micro)
	live, err := slot.Follow(t.Context(), new(recorder))
	if err != nil {
		t.Fatal(err)
	}
	first := live.Opened().Entry
	if _, err := live.Current(first.NotBefore.Add(-time.Second)); !errors.Is(err, keyring.ErrEarly) {
		t.Errorf("before its time: %v", err)
	}
	until := time.Now().Add(time.Hour)
	if _, err := slot.Rotate(t.Context(), Period{From: time.Now(), Until: until}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := live.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := live.Current(until.Add(time.Second)); !errors.Is(err, keyring.ErrLate) || !strings.Contains(err.Error(), "keys rotate micro") {
		t.Errorf("after its time: %v", err)
	}
	if opened, err := live.Current(time.Now()); err != nil || opened.Entry.KeyID == first.KeyID {
		t.Errorf("in its time: %v", err)
	}
	if err := durable.WriteFile(slot.Path, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := live.Opened()
	if _, err := live.Renew(t.Context()); err == nil || live.Opened() != before {
		t.Errorf("a broken file was adopted: %v", err)
	}
	if err := os.Remove(slot.Path); err != nil {
		t.Fatal(err)
	}
	if _, err := live.Renew(t.Context()); !errors.Is(err, ErrUnlisted) || live.Opened() != before {
		t.Errorf("a file that is gone: %v", err)
	}
}

func TestWatchAdoptsARotation(t *testing.T) {
	slot, ledger := In(t.TempDir(), keyring.Micro), new(recorder)
	live, err := slot.Follow(t.Context(), ledger)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- live.Watch(ctx, slog.New(slog.DiscardHandler)) }()
	next, err := slot.Rotate(t.Context(), Period{From: time.Now()}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	<-live.Taken()
	stop()
	if err := <-ended; err != nil || live.Opened().Entry.KeyID != next.Entry.KeyID {
		t.Errorf("%v, signing with %s", err, live.Opened().Entry.KeyID)
	}
}

// The gauge follows a rotation; a key without an end never expires.
func TestExpiryIsShown(t *testing.T) {
	slot, registry := In(t.TempDir(), keyring.Micro), prometheus.NewRegistry()
	live, err := slot.Follow(t.Context(), new(recorder))
	if err != nil {
		t.Fatal(err)
	}
	live.Expose(registry)
	left := func() float64 {
		families, err := registry.Gather()
		if err != nil || len(families) != 1 {
			t.Fatal(families, err)
		}
		return families[0].GetMetric()[0].GetGauge().GetValue()
	}
	if got := left(); !math.IsInf(got, 1) {
		t.Errorf("a key without an end expires in %v s", got)
	}
	now := time.Now()
	if _, err := slot.Rotate(t.Context(), Period{From: now, Until: now.Add(time.Hour)}, now); err != nil {
		t.Fatal(err)
	}
	if _, err := live.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := left(); got < 3000 || got > 3600 {
		t.Errorf("a key that ends in an hour expires in %v s", got)
	}
}
