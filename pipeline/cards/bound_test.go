package cards_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// asked is a bucket that counts the keys and the requests, and can return other answers.
type asked struct {
	cards.Bucket
	gets   atomic.Int64
	many   atomic.Int64                                // requests for several keys
	answer func(ctx context.Context, key string) error // nil: the bucket's own
	leader func(ctx context.Context, key string) error // the leader's answer

	refused error // the answer to requests for several keys; nil: as answer says
}

func (a *asked) GetNewest(ctx context.Context, key string) ([]byte, uint64, error) {
	if a.leader != nil {
		if err := a.leader(ctx, key); err != nil {
			return nil, 0, err
		}
	}
	return a.Bucket.GetNewest(ctx, key)
}

func (a *asked) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	a.gets.Add(1)
	if a.answer != nil {
		if err := a.answer(ctx, key); err != nil {
			return nil, 0, err
		}
	}
	return a.Bucket.Get(ctx, key)
}

func (a *asked) GetMany(ctx context.Context, keys []string, take func(key string, value []byte, revision uint64)) error {
	if a.refused != nil {
		return a.refused
	}
	a.many.Add(1)
	a.gets.Add(int64(len(keys)))
	asked := keys
	if a.answer != nil {
		asked = nil
		for _, key := range keys {
			switch err := a.answer(ctx, key); {
			case err == nil:
				asked = append(asked, key)
			case !errors.Is(err, stream.ErrNotFound):
				return err
			}
		}
	}
	if len(asked) == 0 {
		return nil
	}
	return a.Bucket.GetMany(ctx, asked, take)
}

// bounded opens a registry with a cache of the given size, and returns it with the bucket of its
// cards.
func bounded(t *testing.T, client *stream.Client, cacheBytes int64) (*cards.Registry, *asked) {
	t.Helper()
	bucket := brokertest.Bucket(t, client, stream.Cards)
	revocations := brokertest.Bucket(t, client, stream.Revocations)
	noted := &asked{Bucket: bucket}
	return cards.New(noted, revocations, cacheBytes), noted
}

// follow watches until the test ends. It returns when everything that exists by then is in
// memory. Later cards and revocations are sent to the channel.
func follow(t *testing.T, registry *cards.Registry) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended, later := make(chan struct{}), make(chan error, 1), make(chan string, 10)
	isReady := false
	go func() {
		ended <- registry.Watch(ctx, cards.Observer{
			Ready: func() { isReady = true; close(ready) },
			Registered: func(cardID string, _ uint64) {
				if isReady {
					later <- cardID
				}
			},
			Revoked: func(revocation schema.Revocation) { later <- "revoked " + revocation.CardID },
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the watch ended with %v", err)
		}
	})
	<-ready
	return later
}

// many registers one card for each of n agents, and returns the size of one card in the cache.
func many(t *testing.T, client *stream.Client, n int) (place int64) {
	t.Helper()
	elsewhere := open(t, client)
	for i := range n {
		put(t, elsewhere, card(agentNo(i), cardNo(i), 1+i%6, 90+i))
	}
	_, cached := elsewhere.Bytes()
	return cached/int64(n) + 1
}

func agentNo(i int) string { return fmt.Sprintf("did:web:agent-%03d.example", i) }
func cardNo(i int) string  { return fmt.Sprintf("ac-%03d", i) }

// A cache holds at most its number of bytes. An evicted card is the same card again when it is
// looked up. Everything else about a card needs no lookup.
func TestCacheIsBounded(t *testing.T) {
	const agents = 60
	client := broker(t)
	limit := 20 * many(t, client, agents)
	registry, bucket := bounded(t, client, limit)
	follow(t, registry)
	whole := open(t, client)
	at := time.Date(2026, 6, 15, 0, 0, 0, 0, time.UTC)
	random := rand.New(rand.NewPCG(1, 2))
	for range 5 * agents {
		i := random.IntN(agents)
		found, err := registry.Lookup(t.Context(), cardNo(i))
		if err != nil {
			t.Fatal(err)
		}
		same, err := whole.Lookup(t.Context(), cardNo(i))
		if err != nil || found.Card.Digest != same.Card.Digest || string(found.Card.Raw) != string(same.Card.Raw) {
			t.Fatalf("card %d is another one, error %v", i, err)
		}
		if _, cached := registry.Bytes(); cached > limit {
			t.Fatalf("%d bytes are cached, the limit is %d", cached, limit)
		}
	}
	if _, cached := registry.Bytes(); cached < limit/2 {
		t.Errorf("only %d of %d bytes are used", cached, limit)
	}
	gets := bucket.gets.Load()
	if gets == 0 {
		t.Error("the cache took all cards: the test shows nothing")
	}
	for i := range agents {
		entry, state := registry.Standing(cardNo(i), at)
		if current := registry.Current(agentNo(i), at); entry == nil || state != cards.InForce || current != entry {
			t.Errorf("card %d is %s, current is %v", i, state, current)
		}
		if until := registry.RetainUntil(agentNo(i), at); !until.Equal(at.AddDate(0, 0, 90+i)) {
			t.Errorf("agent %d: kept until %s", i, until)
		}
	}
	if listed := registry.List(registry.All(), at); len(listed) != agents || listed[7].Version != "0.1.0" || listed[7].CardID != cardNo(7) {
		t.Errorf("%d cards are listed", len(listed))
	}
	if now := bucket.gets.Load(); now != gets {
		t.Errorf("the broker was asked %d times for cards that the index has", now-gets)
	}
}

// Cards in use stay in the cache, even if others are looked up meanwhile.
func TestUsedCardsStay(t *testing.T) {
	client := broker(t)
	place := many(t, client, 40)
	registry, bucket := bounded(t, client, 10*place)
	lookUp := func(i int) {
		t.Helper()
		if _, err := registry.Lookup(t.Context(), cardNo(i)); err != nil {
			t.Fatal(err)
		}
	}
	lookUp(0)
	for i := 1; i < 40; i++ {
		lookUp(i)
		lookUp(0)
	}
	if gets := bucket.gets.Load(); gets > 41 { // it may be evicted once, when all are new
		t.Errorf("40 cards were fetched %d times", gets)
	}
	before := bucket.gets.Load()
	if lookUp(1); bucket.gets.Load() == before {
		t.Error("a card that was not used stayed, too")
	}
}

// A card that is not in the cache can be revoked and superseded like any other.
func TestChangesOfEvictedCardsCount(t *testing.T) {
	client := broker(t)
	put(t, open(t, client), card("a", "first", 1, 90))
	registry, _ := bounded(t, client, 0)
	later := follow(t, registry)
	at := time.Date(2026, 6, 15, 0, 0, 0, 0, time.UTC)
	first, err := registry.Lookup(t.Context(), "first")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := open(t, client)
	second := put(t, elsewhere, card("a", "second", 2, 400))
	if _, _, err := elsewhere.Revoke(t.Context(), first.Entry, "lost", noon); err != nil {
		t.Fatal(err)
	}
	if heard := []string{<-later, <-later}; !slices.Contains(heard, "second") || !slices.Contains(heard, "revoked first") {
		t.Errorf("the observer got %q", heard)
	}
	if _, state := registry.Standing("first", at); state != cards.Revoked {
		t.Errorf("the first card is %s", state)
	}
	if in := registry.Instead(first.Entry, "a", at); in == nil || in.CardID != "second" || in.Digest != second.Card.Digest {
		t.Errorf("in force instead: %v", in)
	}
	if now, err := registry.CurrentCard(t.Context(), "a", at); err != nil || now.Card.Digest != second.Card.Digest {
		t.Errorf("current is %v, error %v", now, err)
	}
	if until := registry.RetainUntil("a", at); !until.Equal(at.AddDate(0, 0, 400)) {
		t.Errorf("kept until %s", until)
	}
}

// If the broker gives no answer, or not yet, the card is not reported as unknown.
func TestUnansweredLookupIsNotUnknown(t *testing.T) {
	client := broker(t)
	put(t, open(t, client), card("a", "1", 1, 90))
	registry, bucket := bounded(t, client, 0)
	follow(t, registry)
	for name, answer := range map[string]func(context.Context, string) error{
		"a broker that hangs": func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return fmt.Errorf("%w: %w", stream.ErrUnavailable, ctx.Err())
		},
		"a node that leads no longer": func(context.Context, string) error { return stream.ErrNotFound },
	} {
		bucket.answer, bucket.leader = answer, answer
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if _, err := registry.Lookup(ctx, "1"); errors.Is(err, cards.ErrUnknown) || !errors.Is(err, stream.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", name, err)
		}
		cancel()
		bucket.answer, bucket.leader = nil, nil
		if _, err := registry.Lookup(t.Context(), "1"); err != nil {
			t.Errorf("after %s: %v", name, err)
		}
	}
}

// A card that somebody removes manually from the bucket is unknown once it is evicted. Other
// content under its id is refused.
func TestRemovedAndReplacedCards(t *testing.T) {
	client := broker(t)
	elsewhere := open(t, client)
	put(t, elsewhere, card("a", "1", 1, 90))
	put(t, elsewhere, card("a", "2", 2, 90))
	registry, _ := bounded(t, client, 0)
	follow(t, registry)
	bucket := brokertest.Bucket(t, client, stream.Cards)
	brokertest.RemoveKey(t, bucket, subject.Token("1"))
	for _, err := registry.Lookup(t.Context(), "1"); !errors.Is(err, cards.ErrUnknown); _, err = registry.Lookup(t.Context(), "1") {
		if !errors.Is(err, stream.ErrUnavailable) { // until the watch delivers the removal
			t.Fatal(err)
		}
	}
	if _, err := bucket.Put(t.Context(), subject.Token("2"), card("a", "2", 2, 91)); err != nil {
		t.Fatal(err)
	}
	if _, err := registry.Lookup(t.Context(), "2"); !errors.Is(err, cards.ErrChanged) {
		t.Errorf("another content: %v, want ErrChanged", err)
	}
	if _, err := bucket.Put(t.Context(), subject.Token("2"), card("a", "1", 1, 90)); err != nil {
		t.Fatal(err)
	}
	if _, err := registry.Lookup(t.Context(), "2"); err == nil || errors.Is(err, cards.ErrUnknown) {
		t.Errorf("another card under its key: %v", err)
	}
}

// Missing cards are fetched with few requests. A card that an answer leaves out is asked for alone.
func TestMissesAreFetchedTogether(t *testing.T) {
	const agents = 150
	client := broker(t)
	all := agents * many(t, client, agents)
	registry, bucket := bounded(t, client, all)
	left := subject.Token(cardNo(70))
	bucket.answer = func(_ context.Context, key string) error {
		if key == left {
			return stream.ErrNotFound
		}
		return nil
	}
	var ids, names []string
	for i := range agents {
		ids, names = append(ids, cardNo(i)), append(names, agentNo(i))
	}
	if found, err := registry.LookupAll(t.Context(), ids); err != nil || len(found) != agents {
		t.Errorf("%d found, error %v", len(found), err)
	}
	if n := bucket.many.Load(); n != 3 {
		t.Errorf("%d requests for %d cards, want one for 64", n, agents)
	}
	if n := bucket.gets.Load(); n != agents+1 {
		t.Errorf("%d keys asked for, want each once, and again the one that was left out", n)
	}
	without, limited := bounded(t, client, all)
	limited.refused = stream.ErrRefused // by rights that an earlier version wrote
	if found, err := without.LookupAll(t.Context(), ids); err != nil || len(found) != agents {
		t.Errorf("without the right to ask for several: %d found, error %v", len(found), err)
	}
	limited.refused = stream.ErrUnavailable
	if _, err := without.Arrived(t.Context(), slices.Values(ids)); !errors.Is(err, stream.ErrUnavailable) {
		t.Errorf("without an answer for several: %v", err)
	}
	bucket.answer = nil
	if found, err := registry.LookupAll(t.Context(), []string{"nobody's", ids[0], ids[0]}); err != nil || len(found) != 2 {
		t.Errorf("of a card twice, and one that nobody registered: %d found, error %v", len(found), err)
	}
	full, fetched := bounded(t, client, all)
	follow(t, full) // there is room for every card
	full.Warm(t.Context(), slices.Values(names))
	if n := fetched.gets.Load(); n != 0 {
		t.Errorf("%d cards that are in memory were fetched", n)
	}
	tight, fetched := bounded(t, client, all*4/5)
	follow(t, tight)
	tight.Warm(t.Context(), slices.Values(append(names, "nobody")))
	warmed := fetched.gets.Load()
	if warmed == 0 {
		t.Error("nothing was missing: the test shows nothing")
	}
	fetched.answer = func(context.Context, string) error { return stream.ErrUnavailable }
	tight.Warm(t.Context(), slices.Values(names)) // Lookup reports what cannot be fetched
}

// A replica that lags does not make a card unknown, because the leader is asked.
func TestLookupFromALaggingReplica(t *testing.T) {
	client := broker(t)
	registry, bucket := bounded(t, client, 0)
	elsewhere, _ := bounded(t, client, 0)
	if _, _, err := elsewhere.Put(t.Context(), card("a", "1", 1, 90)); err != nil {
		t.Fatal(err)
	}
	bucket.answer = func(context.Context, string) error { return stream.ErrNotFound }
	if found, err := registry.Lookup(t.Context(), "1"); err != nil || found.Card.CardID != "1" {
		t.Errorf("the card is registered: %v", err)
	}
	if _, err := registry.Lookup(t.Context(), "2"); !errors.Is(err, cards.ErrUnknown) {
		t.Errorf("no card is registered: %v", err)
	}
}

// A registry that is not kept current, such as the exporter's, learns from the leader that a card
// was removed.
func TestRemovalIsLearntFromTheLeader(t *testing.T) {
	client := broker(t)
	registry, _ := bounded(t, client, 0)
	put(t, registry, card("a", "1", 1, 90))
	brokertest.RemoveKey(t, brokertest.Bucket(t, client, stream.Cards), subject.Token("1"))
	if _, err := registry.Lookup(t.Context(), "1"); !errors.Is(err, cards.ErrUnknown) {
		t.Errorf("the card was removed: %v", err)
	}
}
