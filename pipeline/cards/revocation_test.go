package cards_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// noon is the time of revocations in the tests.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 123_456_789, time.UTC)

func TestFirstRevocationStays(t *testing.T) {
	client := broker(t)
	first, second := open(t, client), open(t, client) // two processes
	card := put(t, first, card("a", "x/%2F", 1, 90))
	revocation, created, err := first.Revoke(t.Context(), card.Entry, "key lost", noon)
	want := schema.Revocation{CardID: "x/%2F", AgentID: "a", RevokedAt: noon.Truncate(time.Millisecond), Reason: "key lost"}
	if err != nil || !created || revocation != want {
		t.Fatalf("%+v, created %v, error %v", revocation, created, err)
	}
	for name, registry := range map[string]*cards.Registry{"the same process": first, "another": second} {
		again, created, err := registry.Revoke(t.Context(), card.Entry, "another reason", noon.Add(time.Hour))
		if err != nil || created || again != want {
			t.Errorf("%s: %+v, created %v, error %v", name, again, created, err)
		}
		if at := registry.RevokedAt(card.Card.CardID); !at.Equal(want.RevokedAt) {
			t.Errorf("%s: revoked at %s", name, at)
		}
	}
	if revoked := first.Revocations(); len(revoked) != 1 {
		t.Errorf("%d revocations, want 1", len(revoked))
	}
}

func TestOneOfManyRevokes(t *testing.T) {
	client := broker(t)
	card := put(t, open(t, client), card("a", "1", 1, 90))
	const callers = 8
	got, created := make([]schema.Revocation, callers), make([]bool, callers)
	var group errgroup.Group
	for i := range callers {
		registry := open(t, client)
		group.Go(func() (err error) {
			got[i], created[i], err = registry.Revoke(t.Context(), card.Entry, strings.Repeat("x", i), noon.Add(time.Duration(i)*time.Second))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	creations := 0
	for i := range callers {
		if got[i] != got[0] {
			t.Errorf("%+v and %+v", got[i], got[0])
		}
		if created[i] {
			creations++
		}
	}
	if creations != 1 {
		t.Errorf("%d revoked it, want 1", creations)
	}
}

func TestRevocationWithoutABroker(t *testing.T) {
	registry := open(t, broker(t))
	card := put(t, registry, card("a", "1", 1, 90))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := registry.Revoke(ended, card.Entry, "r", noon); err == nil {
		t.Error("revoked without an answer of the bucket")
	}
	if !registry.RevokedAt("1").IsZero() {
		t.Error("memory has what was not stored")
	}
}

// TestWatchReadsRevocations checks that existing revocations arrive before any card, that new
// ones arrive, and that a value that is not a revocation is reported and skipped.
func TestWatchReadsRevocations(t *testing.T) {
	client := broker(t)
	elsewhere := open(t, client)
	first, second := put(t, elsewhere, card("a", "1", 1, 90)), put(t, elsewhere, card("a", "2", 2, 90))
	if _, _, err := elsewhere.Revoke(t.Context(), second.Entry, "before", noon); err != nil {
		t.Fatal(err)
	}
	bucket := brokertest.Bucket(t, client, stream.Revocations)
	for key, value := range map[string]string{"junk": "junk", "empty": "{}"} {
		if _, err := bucket.Put(t.Context(), subject.Token(key), []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	registry, events := open(t, client), make(chan string, 10)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- registry.Watch(ctx, cards.Observer{
			Registered: func(cardID string, _ uint64) {
				if revoked := !registry.RevokedAt(cardID).IsZero(); revoked != (cardID == "2") {
					t.Errorf("card %s is revoked: %v", cardID, revoked)
				}
				events <- cardID
			},
			Revoked: func(r schema.Revocation) { events <- r.Reason },
			Ready:   func() { events <- "ready" },
			Refused: func(error) { events <- "refused" },
		})
	}()
	for _, want := range []string{"before", "refused", "refused", "1", "2", "ready"} {
		if got := <-events; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	_, known := registry.RevocationsSince(0)
	if _, _, err := elsewhere.Revoke(t.Context(), first.Entry, "after", noon); err != nil {
		t.Fatal(err)
	}
	if got := <-events; got != "after" {
		t.Errorf("%s, want after", got)
	}
	if since, now := registry.RevocationsSince(known); known != 1 || now != 2 || since[0].CardID != "1" {
		t.Errorf("%d known, then %d: %+v", known, now, since)
	}
	if all := registry.Revocations(); all[0].CardID != "1" || all[1].CardID != "2" { // both at the same moment
		t.Errorf("%+v", all)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the watch ended with %v", err)
	}
}

func TestStates(t *testing.T) {
	registry := open(t, broker(t))
	may := put(t, registry, card("a", "may", 5, 90))
	short := put(t, registry, card("a", "short", 6, 90, `"expires_at":"2026-06-02T00:00:00Z"`))
	july := put(t, registry, card("a", "july", 7, 90))
	revocation, _, err := registry.Revoke(t.Context(), may.Entry, "r", noon)
	if err != nil {
		t.Fatal(err)
	}
	at, tick := revocation.RevokedAt, time.Nanosecond
	for _, c := range []struct {
		card *cards.Card
		at   time.Time
		want cards.State
	}{
		{may, at.Add(-tick), cards.InForce},
		{may, at, cards.Revoked},
		{may, at.AddDate(50, 0, 0), cards.Revoked},
		{short, short.Card.IssuedAt.Add(-tick), cards.NotYetIssued},
		{short, short.Card.IssuedAt, cards.InForce},
		{short, short.Card.ExpiresAt, cards.InForce},
		{short, short.Card.ExpiresAt.Add(tick), cards.Expired},
		{july, at, cards.NotYetIssued},
	} {
		if got := registry.State(c.card.Entry, c.at); got != c.want {
			t.Errorf("card %s at %s: %s, want %s", c.card.Card.CardID, c.at, got, c.want)
		}
	}
}

// TestCurrentCard checks that the current card is the newest in force, even if newer ones have
// expired, were revoked or are not issued yet.
func TestCurrentCard(t *testing.T) {
	registry := open(t, broker(t))
	day := func(month time.Month) time.Time { return time.Date(2026, month, 15, 0, 0, 0, 0, time.UTC) }
	put(t, registry, card("a", "january", 1, 90))
	put(t, registry, card("a", "march", 3, 90, `"expires_at":"2026-04-01T00:00:00Z"`))
	may := put(t, registry, card("a", "may", 5, 90))
	twin := put(t, registry, card("a", "a twin of may", 5, 90)) // registered later, so newer than may
	put(t, registry, card("a", "december", 12, 90))
	check := func(at time.Time, want string) {
		t.Helper()
		got := "none"
		if card := registry.Current("a", at); card != nil {
			got = card.CardID
		}
		if got != want {
			t.Errorf("in %s: %s, want %s", at.Month(), got, want)
		}
	}
	check(day(1).AddDate(-1, 0, 0), "none")
	check(day(2), "january")
	check(day(3), "march")
	check(day(4), "january")
	check(day(6), "a twin of may")
	if registry.Instead(may.Entry, "a", day(6)) != nil {
		t.Error("a card is superseded by its twin")
	}
	for _, revoked := range []*cards.Card{twin, may} {
		if _, _, err := registry.Revoke(t.Context(), revoked.Entry, "r", day(6)); err != nil {
			t.Fatal(err)
		}
	}
	check(day(6), "january")
	january, err := registry.Lookup(t.Context(), "january")
	if err != nil {
		t.Fatal(err)
	}
	if registry.Instead(january.Entry, "a", day(6)) != nil {
		t.Error("superseded by revoked cards")
	}
	if registry.Instead(january.Entry, "a", day(5).AddDate(0, 0, 1)) == nil {
		t.Error("not superseded by cards that were still in force")
	}
	put(t, registry, card("b", "of b", 1, 90, `"expires_at":"2026-02-01T00:00:00Z"`))
	put(t, registry, card("b", "b's next", 12, 90))
	if got := registry.Current("b", day(6)); got == nil || got.CardID != "of b" {
		t.Errorf("an agent whose card has expired has %v", got)
	}
	if registry.Current("nobody", day(6)) != nil {
		t.Error("nobody has a card in force")
	}
}
