package cards_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

func TestContentOfACardNeverChanges(t *testing.T) {
	client := broker(t)
	first, second := open(t, client), open(t, client) // two processes
	raw := card("a", "../1", 1, 90)
	registered := put(t, first, raw)
	spaced := bytes.ReplaceAll(raw, []byte(":"), []byte(": "))
	spaced = bytes.ReplaceAll(spaced, []byte("T00: 00: 00Z"), []byte("T00:00:00Z"))
	for name, registry := range map[string]*cards.Registry{"the same process": first, "another": second} {
		known, created, err := registry.Put(t.Context(), spaced)
		if err != nil || created || known.Card.Digest != registered.Card.Digest || !bytes.Equal(known.Card.Raw, raw) {
			t.Errorf("%s, the same content: created %v, error %v", name, created, err)
		}
		if _, _, err := registry.Put(t.Context(), card("a", "../1", 1, 91)); !errors.Is(err, cards.ErrChanged) {
			t.Errorf("%s, other content: %v, want ErrChanged", name, err)
		}
	}
}

func TestOneOfManyCreates(t *testing.T) {
	bucket := brokertest.Bucket(t, broker(t), stream.Cards)
	var mu sync.Mutex
	creations := 0
	var callers errgroup.Group
	for range 8 {
		callers.Go(func() error {
			_, created, err := cards.New(bucket, bucket, config.DefaultCardCacheBytes).Put(t.Context(), card("a", "1", 1, 90))
			mu.Lock()
			defer mu.Unlock()
			if created {
				creations++
			}
			return err
		})
	}
	if err := callers.Wait(); err != nil || creations != 1 {
		t.Errorf("%d of them created it, error %v", creations, err)
	}
}

func TestInvalidCardIsNotRegistered(t *testing.T) {
	registry := open(t, broker(t))
	for _, raw := range []string{"", "{", `{"card_id":"1"}`, string(card("", "1", 1, 90))} {
		var refusal *schema.Refusal
		if _, _, err := registry.Put(t.Context(), []byte(raw)); !errors.As(err, &refusal) || len(refusal.Faults) == 0 {
			t.Errorf("%q: %v, want a refusal with faults", raw, err)
		}
	}
	if _, err := registry.Lookup(t.Context(), "1"); !errors.Is(err, cards.ErrUnknown) {
		t.Errorf("looked up: %v, want ErrUnknown", err)
	}
}

func TestLookupAsksTheBucket(t *testing.T) {
	client := broker(t)
	put(t, open(t, client), card("a", "1", 1, 90))
	registry := open(t, client)
	found, err := registry.Lookup(t.Context(), "1")
	if err != nil || found.Card.AgentID != "a" {
		t.Fatalf("%v, error %v", found, err)
	}
	again, err := registry.Lookup(t.Context(), "1")
	if err != nil || again != found {
		t.Errorf("the second lookup compiled the card again, error %v", err)
	}
	if _, err := registry.Lookup(t.Context(), "2"); !errors.Is(err, cards.ErrUnknown) {
		t.Errorf("%v, want ErrUnknown", err)
	}
	put(t, registry, card("a", "2", 2, 90)) // its absence was cached a moment ago
	if _, err := registry.Lookup(t.Context(), "2"); err != nil {
		t.Errorf("after its registration: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := registry.Lookup(ended, "3"); err == nil || errors.Is(err, cards.ErrUnknown) {
		t.Errorf("without an answer of the bucket: %v, want its error", err)
	}
}

// TestWatchReadsEveryCard checks that existing cards arrive before ready, that new cards arrive,
// and that a value that is not a card is reported and skipped.
func TestWatchReadsEveryCard(t *testing.T) {
	client := broker(t)
	elsewhere := open(t, client)
	put(t, elsewhere, card("a", "before", 1, 90))
	bucket := brokertest.Bucket(t, client, stream.Cards)
	if _, err := bucket.Put(t.Context(), subject.Token("junk"), []byte("junk")); err != nil {
		t.Fatal(err)
	}
	registry := open(t, client)
	events := make(chan string, 10)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- registry.Watch(ctx, cards.Observer{
			Registered: func(cardID string, _ uint64) { events <- cardID },
			Ready:      func() { events <- "ready" },
			Refused:    func(error) { events <- "refused" },
		})
	}()
	for _, want := range []string{"before", "refused", "ready"} {
		if got := <-events; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if _, err := registry.Lookup(t.Context(), "after"); !errors.Is(err, cards.ErrUnknown) {
		t.Errorf("%v, want ErrUnknown", err)
	}
	put(t, elsewhere, card("a", "after", 2, 90))
	if got := <-events; got != "after" {
		t.Errorf("%s, want after", got)
	}
	if _, err := registry.Lookup(t.Context(), "after"); err != nil {
		t.Errorf("the watch brought it, but: %v", err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the watch ended with %v", err)
	}
}

func TestCardInForceInstead(t *testing.T) {
	registry := open(t, broker(t))
	january := put(t, registry, card("a", "january", 1, 90))
	march := put(t, registry, card("a", "march", 3, 30, `"expires_at":"2026-04-01T00:00:00Z"`))
	other := put(t, registry, card("b", "other", 6, 365))
	day := func(month time.Month) time.Time { return time.Date(2026, month, 15, 0, 0, 0, 0, time.UTC) }
	for _, c := range []struct {
		card  *cards.Card
		agent string
		at    time.Time
		want  *cards.Card
	}{
		{january, "a", day(2), nil}, // march was not issued yet
		{january, "a", day(3), march},
		{january, "a", day(4), nil}, // march has expired
		{march, "a", day(3), nil},
		{other, "b", day(7), nil},
		{january, "b", day(5), nil}, // not b's own card, and b has none yet
		{january, "b", day(7), other},
		{january, "nobody", day(7), nil},
	} {
		var want *cards.Entry
		if c.want != nil {
			want = c.want.Entry
		}
		if got := registry.Instead(c.card.Entry, c.agent, c.at); got != want {
			t.Errorf("card %s of %s in %s: %v in force instead, want %v", c.card.Card.CardID, c.agent, c.at.Month(), got, want)
		}
	}
}

func TestRetainUntilTheLongestCommitment(t *testing.T) {
	registry := open(t, broker(t))
	put(t, registry, card("a", "1", 1, 90))
	put(t, registry, card("a", "2", 2, 30)) // newer, with a shorter retention
	received := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	if got, want := registry.RetainUntil("a", received), received.AddDate(0, 0, 90); !got.Equal(want) {
		t.Errorf("until %s, want %s", got, want)
	}
	if got := registry.RetainUntil("nobody", received); !got.IsZero() {
		t.Errorf("an agent without a card: until %s, want no end", got)
	}
}
