package cards_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// site returns a broker with a card, a revocation and a value that is not a card.
func site(t *testing.T) *stream.Client {
	t.Helper()
	client := broker(t)
	registry := open(t, client)
	if _, _, err := registry.Revoke(t.Context(), put(t, registry, card("a", "1", 1, 90)).Entry, "test", noon); err != nil {
		t.Fatal(err)
	}
	bucket, err := client.Bucket(t.Context(), stream.Cards)
	if err == nil {
		_, err = bucket.Put(t.Context(), subject.Token("junk"), []byte("junk"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// Load returns once it has read every card and revocation. It reports what cannot be decoded.
func TestLoadReadsEverything(t *testing.T) {
	registry := open(t, site(t))
	refused := 0
	if err := registry.Load(t.Context(), func(error) { refused++ }); err != nil {
		t.Fatal(err)
	}
	if all := registry.All(); len(all) != 1 || registry.State(all[0], noon) != cards.Revoked || refused != 1 {
		t.Errorf("%d cards, %d refused; want one revoked card and one refused value", len(all), refused)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := registry.Load(ended, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v, want Canceled", err)
	}
}

// twice runs an attempt again after its first error.
type twice struct{ again chan<- error }

func (r twice) Keep(_ context.Context, _ string, attempt func() error) error {
	r.again <- attempt()
	return attempt()
}

// Follow watches again after an error, calls Ready only once, and logs what cannot be decoded with
// its effect. It returns nil when its context ends.
func TestFollowWatchesUntilItsContextEnds(t *testing.T) {
	client := site(t)
	var log bytes.Buffer
	ready, registered := make(chan struct{}), make(chan string, 10)
	first := &failingOnce{Bucket: brokertest.Bucket(t, client, stream.Cards), fail: ready, listed: make(chan struct{})}
	registry := cards.New(first, brokertest.Bucket(t, client, stream.Revocations), 0)
	ctx, cancel := context.WithCancel(t.Context())
	failed, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		ended <- registry.Follow(ctx, twice{failed}, slog.New(slog.NewTextHandler(&log, nil)), "it is skipped", cards.Observer{
			Registered: func(cardID string, _ uint64) { registered <- cardID },
			Revoked:    func(schema.Revocation) {},
			Ready:      func() { close(ready) }, // a second call would panic
		})
	}()
	if err := <-failed; !errors.Is(err, errWatch) {
		t.Errorf("the first watch ended with %v, want %v", err, errWatch)
	}
	for range 2 { // of each watch
		if id := <-registered; id != "1" {
			t.Errorf("registered %q, want 1", id)
		}
	}
	<-first.listed
	put(t, open(t, client), card("a", "2", 2, 90))
	if id := <-registered; id != "2" {
		t.Errorf("registered %q, want 2", id)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("after its context has ended: %v, want nil", err)
	}
	if n := strings.Count(log.String(), `effect="it is skipped"`); n != 2 {
		t.Errorf("%d lines about the value that is not a card, want one for each watch: %s", n, &log)
	}
}

var errWatch = errors.New("the watch failed")

// failingOnce is a bucket whose first watch fails once fail is closed.
type failingOnce struct {
	cards.Bucket
	fail   <-chan struct{}
	listed chan struct{} // closed when the second watch is ready
	done   bool
}

func (b *failingOnce) Watch(ctx context.Context, pattern string, after uint64, apply func(stream.Change), ready func()) error {
	if b.done {
		return b.Bucket.Watch(ctx, pattern, after, apply, func() { ready(); close(b.listed) })
	}
	b.done = true
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		<-b.fail
		cancel(errWatch)
	}()
	_ = b.Bucket.Watch(ctx, pattern, after, apply, ready)
	return context.Cause(ctx)
}
