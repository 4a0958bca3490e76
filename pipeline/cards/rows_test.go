package cards_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// row is a card in the table.
type row struct {
	agent, card string
	days        uint32
}

// table is the database: rows of cards, complete up to a revision.
type table struct {
	position uint64
	rows     []row
	fail     error
	queries  int
	asked    []string // the agents of the last query
}

func (t *table) CardPosition(context.Context, time.Time) (revision, cards uint64, err error) {
	return t.position, uint64(len(t.rows)), t.fail
}

func (t *table) RegisteredCards(_ context.Context, agents []string, take func(agentID, cardID string, retentionDays uint32)) error {
	t.queries++
	t.asked = agents
	for _, r := range t.rows {
		if slices.Contains(agents, r.agent) {
			take(r.agent, r.card, r.days)
		}
	}
	return t.fail
}

// relying opens a registry that relies on the table. It returns the registry with its bucket.
func relying(t *testing.T, client *stream.Client, rows *table) (*cards.Registry, *asked) {
	t.Helper()
	return relyingWithin(t, client, rows, 1<<20)
}

// relyingWithin is relying with a cache of that size.
func relyingWithin(t *testing.T, client *stream.Client, rows *table, cacheBytes int64) (*cards.Registry, *asked) {
	t.Helper()
	registry, bucket := bounded(t, client, cacheBytes)
	state, err := client.StreamState(t.Context(), stream.CardRecords)
	if err == nil {
		err = registry.Rely(t.Context(), rows, state)
	}
	if err != nil {
		t.Fatal(err)
	}
	return registry, bucket
}

// settle puts a registered card into the table, as the verifier does.
func (t *table) settle(card *cards.Card, revision uint64) {
	t.rows = append(t.rows, row{card.Card.AgentID, card.Card.CardID, uint32(card.Card.Audit.RetentionDays)})
	t.position = revision
}

// A registry that relies on the rows reads only the other cards at its start, and an agent's cards
// when it is asked about it. Until then the agent's data is kept forever.
func TestOnlyTheCardsOfKnownAgentsAreRead(t *testing.T) {
	client := broker(t)
	rows, elsewhere := new(table), open(t, client)
	rows.settle(put(t, elsewhere, card("a", "a1", 1, 400)), 1)
	rows.settle(put(t, elsewhere, card("a", "a2", 2, 30)), 2)
	rows.settle(put(t, elsewhere, card("b", "b1", 1, 90)), 3)
	put(t, elsewhere, card("a", "a3", 3, 60)) // no row yet
	registry, bucket := relying(t, client, rows)
	later := follow(t, registry)
	if known := registry.All(); len(known) != 1 || known[0].CardID != "a3" || bucket.gets.Load() != 0 {
		t.Errorf("the start read %d cards and asked for %d", len(known), bucket.gets.Load())
	}
	if until := registry.RetainUntil("a", noon); !until.IsZero() {
		t.Errorf("an agent that is not known: kept until %s, want forever", until)
	}
	for range 2 {
		registry.Warm(t.Context(), slices.Values([]string{"a", "a", "nobody"}))
		if err := registry.Know(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if err := registry.Know(t.Context(), "nobody"); err != nil {
			t.Fatal(err)
		}
	}
	if rows.queries != 1 || bucket.gets.Load() != 2 {
		t.Errorf("%d queries and %d cards read, want 1 and 2", rows.queries, bucket.gets.Load())
	}
	if until, want := registry.RetainUntil("a", noon), noon.AddDate(0, 0, 400); !until.Equal(want) {
		t.Errorf("kept until %s, want %s", until, want)
	}
	if until := registry.RetainUntil("nobody", noon); !until.IsZero() {
		t.Errorf("an agent without cards: kept until %s", until)
	}
	if current := registry.Current("a", noon); current == nil || current.CardID != "a3" {
		t.Errorf("current is %v", current)
	}
	put(t, elsewhere, card("a", "a4", 4, 500))
	if id := <-later; id != "a4" {
		t.Errorf("registered %s", id)
	}
	if until, want := registry.RetainUntil("a", noon), noon.AddDate(0, 0, 500); !until.Equal(want) {
		t.Errorf("after a new card: kept until %s, want %s", until, want)
	}
}

// The rows of many agents are looked up ahead with one query. Their cards are read when they are to be known.
func TestRowsAreLookedUpAhead(t *testing.T) {
	client := broker(t)
	rows, elsewhere := new(table), open(t, client)
	rows.settle(put(t, elsewhere, card("a", "a1", 1, 400)), 1)
	rows.settle(put(t, elsewhere, card("b", "b1", 1, 90)), 2)
	rows.settle(put(t, elsewhere, card("c", "c1", 1, 30)), 3)
	registry, bucket := relying(t, client, rows)
	follow(t, registry)
	long := strings.Repeat("x", schema.MaxIDBytes+1) // no card can have such an agent
	ahead := slices.Values([]string{"a", "nobody", "b", "a", long})
	rows.fail = errors.New("down")
	registry.Ahead(t.Context(), ahead)
	if err := registry.Know(t.Context(), "a"); !errors.Is(err, rows.fail) {
		t.Errorf("while the database fails: %v", err)
	}
	rows.fail, rows.queries = nil, 0
	registry.Ahead(t.Context(), ahead)
	if !slices.Equal(rows.asked, []string{"a", "b", "nobody"}) {
		t.Errorf("the rows of %q were asked for", rows.asked)
	}
	if bucket.gets.Load() != 0 || registry.Knows("a") || !registry.RetainUntil("a", noon).IsZero() {
		t.Errorf("agents are known before their cards are read; %d cards were read", bucket.gets.Load())
	}
	for _, agent := range []string{"a", "nobody", "b", "a", long} {
		if err := registry.Know(t.Context(), agent); err != nil {
			t.Fatal(err)
		}
	}
	if rows.queries != 1 || bucket.gets.Load() != 2 {
		t.Errorf("%d queries and %d cards read, want 1 and 2", rows.queries, bucket.gets.Load())
	}
	if until, want := registry.RetainUntil("b", noon), noon.AddDate(0, 0, 90); !until.Equal(want) || !registry.Knows("nobody") {
		t.Errorf("kept until %s, want %s", until, want)
	}
	if err := registry.KnowAll(t.Context(), slices.Values([]string{"a", "c"})); err != nil || rows.queries != 2 || !slices.Equal(rows.asked, []string{"c"}) {
		t.Errorf("another agent: error %v, %d queries, the last one for %q", err, rows.queries, rows.asked)
	}
	for i := range 3 * 10_000 { // agents without cards do not stay for ever, and neither does what was found ahead
		registry.KnowRetention(map[string]uint32{agentNo(i): 0})
	}
	if err := registry.Know(t.Context(), "nobody"); err != nil || rows.queries != 3 {
		t.Errorf("an agent that was forgotten: error %v, %d queries", err, rows.queries)
	}
}

// A look-up ahead evicts nothing: where few cards fit in memory, no more are read than without it.
func TestALookUpAheadEvictsNothing(t *testing.T) {
	const agents, slice = 600, 50
	client := broker(t)
	bytes := many(t, client, agents)
	var names []string
	rows := new(table)
	elsewhere := open(t, client)
	for i := range agents {
		names = append(names, agentNo(i))
		found, err := elsewhere.Lookup(t.Context(), cardNo(i))
		if err != nil {
			t.Fatal(err)
		}
		rows.settle(found, uint64(i+1))
	}
	read := func(ahead bool) int64 {
		registry, bucket := relyingWithin(t, client, rows, 2*slice*bytes)
		follow(t, registry)
		for range 2 {
			if ahead {
				registry.Ahead(t.Context(), slices.Values(names))
			}
			for part := range slices.Chunk(names, slice) {
				registry.Warm(t.Context(), slices.Values(part))
				for _, agent := range part {
					if _, err := registry.CurrentCard(t.Context(), agent, noon); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		return bucket.gets.Load()
	}
	if with, without := read(true), read(false); with > without+without/20 || without < agents {
		t.Errorf("%d cards were read, without a look-up ahead %d", with, without)
	}
}

// A caller that has read the rows makes agents known by their retention. The watch keeps it current.
func TestRetentionOfRows(t *testing.T) {
	client := broker(t)
	rows, elsewhere := new(table), open(t, client)
	rows.settle(put(t, elsewhere, card("a", "a1", 1, 400)), 1)
	registry, bucket := relying(t, client, rows)
	whole, _ := bounded(t, client, 1<<20)
	later := follow(t, registry)
	if !registry.Relies() || whole.Relies() {
		t.Errorf("relies on rows: %v, without Rely: %v", registry.Relies(), whole.Relies())
	}
	whole.KnowRetention(map[string]uint32{"a": 1})
	registry.KnowRetention(map[string]uint32{"a": 400, "b": 0})
	for i := range 3 * 10_000 { // agents without cards do not stay for ever
		registry.KnowRetention(map[string]uint32{agentNo(i): 0})
	}
	if registry.Knows("b") || !registry.Knows("a") || !whole.Knows("b") {
		t.Errorf("knows b, which has no card: %v; a: %v; without Rely b: %v", registry.Knows("b"), registry.Knows("a"), whole.Knows("b"))
	}
	registry.KnowRetention(map[string]uint32{"a": 30}) // the row with 400 days was lost
	until := func(agent string, days int) {
		t.Helper()
		want := time.Time{}
		if days > 0 {
			want = noon.AddDate(0, 0, days)
		}
		if until := registry.RetainUntil(agent, noon); !until.Equal(want) {
			t.Errorf("agent %s: kept until %s, want %s", agent, until, want)
		}
	}
	until("a", 400)
	until("b", 0)
	put(t, elsewhere, card("a", "a2", 2, 500))
	<-later
	until("a", 500)
	if rows.queries > 0 || bucket.gets.Load() > 0 {
		t.Errorf("%d queries and %d cards read", rows.queries, bucket.gets.Load())
	}
}

// If the rows are not those of the bucket, every card is read.
func TestMissingRowsAreNotReliedOn(t *testing.T) {
	client := broker(t)
	elsewhere := open(t, client)
	for i := range 3 {
		put(t, elsewhere, card("a", cardNo(i), 1+i, 90))
	}
	all := []row{{"a", cardNo(0), 90}, {"a", cardNo(1), 90}, {"a", cardNo(2), 90}}
	for name, c := range map[string]struct {
		rows table
		want int // cards that are read
	}{
		"all rows":                                {table{position: 3, rows: all}, 0},
		"the last one is not a row":               {table{position: 2, rows: all[:2]}, 1},
		"no position":                             {table{rows: all}, 3},
		"a row was lost":                          {table{position: 3, rows: all[:2]}, 3},
		"the bucket is older than the rows":       {table{position: 4, rows: append(all, row{"a", "x", 90})}, 3},
		"rows were lost, and others not made yet": {table{position: 2, rows: all[:1]}, 3},
	} {
		registry, _ := relying(t, client, &c.rows)
		if err := registry.Load(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if n := len(registry.All()); n != c.want {
			t.Errorf("%s: %d cards were read, want %d", name, n, c.want)
		}
		if err := registry.Know(t.Context(), "a"); err != nil || len(registry.OfAgent("a")) != 3 {
			t.Errorf("%s: the agent has %d cards, error %v", name, len(registry.OfAgent("a")), err)
		}
	}
}

// Answers do not depend on which cards are rows, and on when an agent was asked about.
func TestRowsChangeNoAnswer(t *testing.T) {
	const agents, registered = 8, 60
	client := broker(t)
	elsewhere, random := open(t, client), rand.New(rand.NewPCG(3, 4))
	rows := new(table)
	add := func(i int) *cards.Card {
		month, members := 1+random.IntN(12), []string(nil)
		if month <= 4 && random.IntN(2) == 0 {
			members = append(members, `"expires_at":"2026-05-15T00:00:00Z"`)
		}
		made := put(t, elsewhere, card(agentNo(random.IntN(agents)), cardNo(i), month, 1+random.IntN(400), members...))
		if random.IntN(12) == 0 {
			if _, _, err := elsewhere.Revoke(t.Context(), made.Entry, "lost", noon.AddDate(0, 0, -random.IntN(100))); err != nil {
				t.Fatal(err)
			}
		}
		return made
	}
	for i := range registered {
		if made := add(i); i < registered*2/3 {
			rows.settle(made, uint64(i+1))
		}
	}
	whole, _ := bounded(t, client, 1<<20)
	partial, _ := relying(t, client, rows)
	follow(t, whole)
	follow(t, partial)
	check := func(agent string) {
		t.Helper()
		if err := partial.Know(t.Context(), agent); err != nil {
			t.Fatal(err)
		}
		var ids [2][]string
		for i, registry := range []*cards.Registry{whole, partial} {
			for _, entry := range registry.OfAgent(agent) {
				ids[i] = append(ids[i], entry.CardID)
			}
		}
		if !slices.Equal(ids[0], ids[1]) {
			t.Fatalf("agent %s has %q, want %q", agent, ids[1], ids[0])
		}
		for month := time.January; month <= time.December; month++ {
			at := time.Date(2026, month, 20, 0, 0, 0, 0, time.UTC)
			if a, b := whole.RetainUntil(agent, at), partial.RetainUntil(agent, at); !a.Equal(b) {
				t.Errorf("agent %s: kept until %s, want %s", agent, b, a)
			}
			if a, b := whole.Current(agent, at), partial.Current(agent, at); nameOf(a) != nameOf(b) {
				t.Errorf("agent %s in %s: current is %s, want %s", agent, month, nameOf(b), nameOf(a))
			}
			of := whole.OfAgent(agentNo(random.IntN(agents)))
			if len(of) == 0 {
				continue
			}
			named := of[random.IntN(len(of))]
			other, err := partial.Lookup(t.Context(), named.CardID)
			if err != nil {
				t.Fatal(err)
			}
			if a, b := whole.Instead(named, agent, at), partial.Instead(other.Entry, agent, at); nameOf(a) != nameOf(b) {
				t.Errorf("agent %s in %s: in force instead of %s is %s, want %s", agent, month, named.CardID, nameOf(b), nameOf(a))
			}
		}
	}
	for i := range agents {
		check(agentNo(i))
	}
}

func nameOf(entry *cards.Entry) string {
	if entry == nil {
		return "none"
	}
	return entry.CardID
}

// An agent counts as known only when the rows and the broker have answered. What was removed from
// the bucket is no card any more, and its commitment stays.
func TestKnowFailsUntilEverythingAnswers(t *testing.T) {
	client := broker(t)
	rows, elsewhere := new(table), open(t, client)
	for i, raw := range [][]byte{card("a", "1", 1, 90), card("a", "removed", 2, 200), card("a", "replaced", 3, 30)} {
		rows.settle(put(t, elsewhere, raw), uint64(i+1))
	}
	bucket := brokertest.Bucket(t, client, stream.Cards)
	brokertest.RemoveKey(t, bucket, subject.Token("removed"))
	if _, err := bucket.Put(t.Context(), subject.Token("replaced"), []byte("junk")); err != nil {
		t.Fatal(err)
	}
	rows.position = 5 // both changes are known to the table's writer
	registry, fetched := relying(t, client, rows)
	follow(t, registry)
	wrong := errors.New("the database is away")
	rows.fail = wrong
	if err := registry.Know(t.Context(), "a"); !errors.Is(err, wrong) {
		t.Errorf("without the database: %v", err)
	}
	rows.fail = nil
	fetched.answer = func(context.Context, string) error { return stream.ErrUnavailable }
	if err := registry.Know(t.Context(), "a"); !errors.Is(err, stream.ErrUnavailable) {
		t.Errorf("without the broker: %v", err)
	}
	if until := registry.RetainUntil("a", noon); !until.IsZero() {
		t.Errorf("kept until %s before anything answered", until)
	}
	fetched.answer = nil
	if err := registry.Know(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if of := registry.OfAgent("a"); len(of) != 1 || of[0].CardID != "1" {
		t.Errorf("the agent has %d cards", len(of))
	}
	if until, want := registry.RetainUntil("a", noon), noon.AddDate(0, 0, 200); !until.Equal(want) {
		t.Errorf("kept until %s, want %s", until, want)
	}
}

// Arrived asks about a card again that was unknown a moment ago.
func TestArrivedAsksTheLeader(t *testing.T) {
	client := broker(t)
	registry, bucket := bounded(t, client, 0)
	if _, err := registry.Lookup(t.Context(), "1"); !errors.Is(err, cards.ErrUnknown) {
		t.Fatal(err)
	}
	put(t, open(t, client), card("a", "1", 1, 90))
	bucket.answer = func(context.Context, string) error { return stream.ErrNotFound } // a replica that lags
	arrived, err := registry.Arrived(t.Context(), slices.Values([]string{"2", "1"}))
	if err != nil || !slices.Equal(arrived, []string{"1"}) {
		t.Errorf("%q, error %v", arrived, err)
	}
	bucket.leader = func(context.Context, string) error { return stream.ErrUnavailable }
	if _, err := registry.Arrived(t.Context(), slices.Values([]string{"2"})); !errors.Is(err, stream.ErrUnavailable) {
		t.Errorf("without the broker: %v", err)
	}
}
