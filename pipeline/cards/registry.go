package cards

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// Errors that callers handle.
var (
	// ErrUnknown means that no card is registered under this id.
	ErrUnknown = errors.New("no card is registered under this id")
	// ErrChanged means that other content is registered under this card id. A new version of a
	// card needs a new card_id.
	ErrChanged = errors.New("other content is registered under this card_id; a new version needs a new card_id")
)

// Bucket is a key-value bucket of cards or of their revocations. A key is the token of a card id.
type Bucket interface {
	Get(ctx context.Context, key string) (value []byte, revision uint64, err error)
	GetNewest(ctx context.Context, key string) (value []byte, revision uint64, err error)
	GetMany(ctx context.Context, keys []string, take func(key string, value []byte, revision uint64)) error
	Create(ctx context.Context, key string, value []byte) (revision uint64, err error)
	Watch(ctx context.Context, pattern string, after uint64, apply func(stream.Change), ready func()) error
}

// Card is a registered card, compiled. It is immutable.
type Card struct {
	*aap.Compiled
	Entry *Entry

	bytes int64 // memory that it takes, without its rules
}

// Registry looks up, registers and revokes cards. Any goroutine may use it.
type Registry struct {
	bucket      Bucket
	revocations Bucket
	fetches     atomic.Uint64 // reads of cards from the bucket

	rows  Rows   // the cards up to revision after; nil: none, Watch reads every card
	after uint64 // Watch reads the cards after this revision

	mu          sync.RWMutex
	byID        map[string]*Entry
	agents      map[string]*Entry   // each agent's newest card
	hosts       map[string][]string // agents by the host in their ids
	known       map[string]int32    // agents that are known (Know, KnowRetention), with the longest retention of their rows; nil without rows
	ahead       map[string]*rowsOf  // what Ahead found last about agents that were not known; an entry is removed when its agent becomes known, and never changed
	uncommitted int                 // agents without retention that were added to known since those without cards were last removed
	indexBytes  int64               // memory of the entries and revocations
	cache       cache
	absent      map[string]time.Time
	revoked     map[string]schema.Revocation // all revocations by card id
	log         []schema.Revocation          // the same revocations in order of arrival
}

// absentFor is how long a card that was not in the bucket counts as absent without another
// request, unless the watch delivers it sooner.
const absentFor = time.Second

// Open returns the registry of a broker. It caches cacheBytes of compiled cards. With 0, each
// lookup asks the broker. Watch keeps the registry current.
func Open(ctx context.Context, broker *stream.Client, cacheBytes int64) (*Registry, error) {
	cards, err := broker.Bucket(ctx, stream.Cards)
	if err != nil {
		return nil, err
	}
	revocations, err := broker.Bucket(ctx, stream.Revocations)
	if err != nil {
		return nil, err
	}
	return New(cards, revocations, cacheBytes), nil
}

// New returns a registry over its two buckets. In all else it is like Open.
func New(cards, revocations Bucket, cacheBytes int64) *Registry {
	return &Registry{
		bucket:      cards,
		revocations: revocations,
		byID:        map[string]*Entry{},
		agents:      map[string]*Entry{},
		hosts:       map[string][]string{},
		cache:       cache{limit: cacheBytes, rules: map[schema.Digest]*shared{}},
		absent:      map[string]time.Time{},
		revoked:     map[string]schema.Revocation{},
	}
}

// Put registers the card in raw, which must be unsigned or signed with its own keys. In all else
// it is like Add. An invalid card is a *schema.Refusal.
func (r *Registry) Put(ctx context.Context, raw []byte) (card *Card, created bool, err error) {
	compiled, err := aap.Register(raw)
	if err != nil {
		return nil, false, err
	}
	return r.Add(ctx, compiled)
}

// Add registers a card. created is false if the same content (by its JCS form) is already
// registered. Errors: ErrChanged, or the bucket's.
func (r *Registry) Add(ctx context.Context, compiled *aap.Compiled) (card *Card, created bool, err error) {
	id := compiled.Card.CardID
	revision, err := r.bucket.Create(ctx, subject.Token(id), compiled.Card.Raw)
	if err == nil {
		card, err = r.keep(compiled, revision, false)
		return card, err == nil, err
	}
	if !errors.Is(err, stream.ErrConflict) {
		return nil, false, fmt.Errorf("register card %q: %w", id, err)
	}
	known, err := r.fetch(ctx, id, false)
	if err != nil {
		return nil, false, err
	}
	return known, false, known.Entry.Same(compiled.Card)
}

// Lookup returns the card with the id, from memory or else from the bucket. Errors: ErrUnknown,
// or the bucket's, after which it is safe to try again.
func (r *Registry) Lookup(ctx context.Context, cardID string) (*Card, error) {
	if card, err := r.recall(cardID); card != nil || err != nil {
		return card, err
	}
	return r.fetch(ctx, cardID, true)
}

// recall returns a card that is in memory. It returns ErrUnknown for a card that was unknown a
// moment ago, and no card if the bucket has to be asked.
func (r *Registry) recall(cardID string) (*Card, error) {
	r.mu.RLock()
	entry := r.byID[cardID]
	var since time.Time
	if entry == nil {
		since = r.absent[cardID]
	}
	r.mu.RUnlock()
	if entry != nil {
		return entry.compiled(), nil
	}
	if time.Since(since) < absentFor || len(cardID) > schema.MaxIDBytes {
		return nil, ErrUnknown
	}
	return nil, nil
}

// fetch reads a card from the bucket. Any replica may answer, and may lag a little. So fetch asks
// the leader before it reports a card as unknown.
func (r *Registry) fetch(ctx context.Context, cardID string, displace bool) (*Card, error) {
	raw, revision, err := r.bucket.Get(ctx, subject.Token(cardID))
	if errors.Is(err, stream.ErrNotFound) {
		raw, revision, err = r.bucket.GetNewest(ctx, subject.Token(cardID))
	}
	if errors.Is(err, stream.ErrNotFound) {
		r.fetches.Add(1)
		return nil, r.notFound(cardID, revision)
	}
	if err != nil {
		return nil, fmt.Errorf("look up card %q: %w", cardID, err)
	}
	return r.read(raw, subject.Token(cardID), revision, displace)
}

// read adds a card of the bucket to memory.
func (r *Registry) read(raw []byte, key string, revision uint64, displace bool) (*Card, error) {
	r.fetches.Add(1)
	card, err := decode(raw, key)
	if err != nil {
		return nil, err
	}
	return r.keep(r.compile(card), revision, displace)
}

// compile compiles a card, with the rules of a card in the cache if one has the same policy.
func (r *Registry) compile(card *schema.Card) *aap.Compiled {
	r.mu.RLock()
	known := r.cache.rules[card.Policy]
	r.mu.RUnlock()
	if known != nil {
		return known.For(card)
	}
	return aap.Compile(card)
}

// notFound returns ErrUnknown, unless memory shows that the card was registered and not removed
// after that. removal is the revision of the removal; 0 means that the leader knows of none. A
// node that is no longer the leader may not know a card yet.
func (r *Registry) notFound(cardID string, removal uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if entry := r.byID[cardID]; entry != nil && !entry.removed && removal <= entry.revision {
		return fmt.Errorf("look up card %q: it is registered, but the broker does not find it: %w", cardID, stream.ErrUnavailable)
	}
	if len(r.absent) >= maxAbsent {
		clear(r.absent)
	}
	r.absent[strings.Clone(cardID)] = time.Now()
	return ErrUnknown
}

// maxAbsent limits the memory of unsuccessful lookups.
const maxAbsent = 10_000

// errUnreadable means that what the bucket has under a card's key is not that card.
var errUnreadable = errors.New("read a registered card")

// decode decodes the card under a key of the bucket.
func decode(raw []byte, key string) (*schema.Card, error) {
	card, err := schema.DecodeCard(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	if subject.Token(card.CardID) != key {
		return nil, fmt.Errorf("%w: the card under key %s has the card_id %q", errUnreadable, key, card.CardID)
	}
	return card, nil
}

// keep adds a compiled card to memory. A card that is already there stays.
func (r *Registry) keep(compiled *aap.Compiled, revision uint64, displace bool) (*Card, error) {
	card := &Card{Compiled: compiled, bytes: weigh(compiled)}
	r.mu.Lock()
	defer r.mu.Unlock()
	entry, err := r.note(compiled.Card, revision)
	if err != nil {
		return nil, err
	}
	if known := entry.compiled(); known != nil {
		return known, nil
	}
	card.Entry = entry
	if displace || r.cache.room() {
		r.cache.put(card)
	}
	return card, nil
}

// room reports whether the cache has room for another card.
func (r *Registry) room() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.cache.room()
}

// Cards are fetched togetherFetched with one request, and fetchesAtOnce requests in parallel. The broker answers the
// requests of a connection one after the other, and everything else that this process asks of it waits behind them, such
// as the renewal of a lease: a request whose cards are all on disk takes it a second or more. So more requests gain nothing.
const (
	togetherFetched = 64
	fetchesAtOnce   = 2
)

// LookupAll returns the cards with the ids, without those that are unknown or that the bucket no
// longer has as registered. Cards from the bucket evict nothing from memory.
func (r *Registry) LookupAll(ctx context.Context, cardIDs []string) ([]*Card, error) {
	var found []*Card
	var ask []string
	for _, id := range cardIDs {
		switch card, err := r.recall(id); {
		case card != nil:
			found = append(found, card)
		case err == nil:
			ask = append(ask, id)
		}
	}
	fetched, err := r.fetchAll(ctx, ask, false)
	return append(found, fetched...), err
}

// Arrived returns those of the cards that are registered now. It asks the broker's leader before
// it leaves one out, even if the card was unknown a moment ago.
func (r *Registry) Arrived(ctx context.Context, cardIDs iter.Seq[string]) (arrived []string, err error) {
	ids := slices.DeleteFunc(slices.Sorted(cardIDs), func(id string) bool { return len(id) > schema.MaxIDBytes })
	found, err := r.fetchAll(ctx, ids, false)
	for _, card := range found {
		arrived = append(arrived, card.Entry.CardID)
	}
	return arrived, err
}

// Warm reads the cards of agents that will be looked up, and compiles the newest, unless they are
// in memory. What cannot be read is left to Know and Lookup, which report the error.
func (r *Registry) Warm(ctx context.Context, agents iter.Seq[string]) {
	_ = r.KnowAll(ctx, agents)
	_, _ = r.fetchAll(ctx, r.missing(agents), true)
}

// fetchAll fetches cards, many with one request, until a request fails. It leaves out what
// LookupAll does.
func (r *Registry) fetchAll(ctx context.Context, cardIDs []string, displace bool) (found []*Card, err error) {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fetchesAtOnce)
	for part := range slices.Chunk(cardIDs, togetherFetched) {
		group.Go(func() error {
			cards, err := r.fetchTogether(ctx, part, displace)
			mu.Lock()
			defer mu.Unlock()
			found = append(found, cards...)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return found, nil
}

// fetchTogether fetches cards with one request, and those that the answer leaves out one by one.
func (r *Registry) fetchTogether(ctx context.Context, cardIDs []string, displace bool) (found []*Card, err error) {
	keys := make([]string, len(cardIDs))
	for i, id := range cardIDs {
		keys[i] = subject.Token(id)
	}
	answered := make(map[string]bool, len(keys))
	add := func(card *Card, failed error) {
		switch {
		case failed == nil:
			found = append(found, card)
		case !errors.Is(failed, ErrUnknown) && !errors.Is(failed, ErrChanged) && !errors.Is(failed, errUnreadable):
			err = cmp.Or(err, failed)
		}
	}
	if len(keys) > 1 {
		refused := r.bucket.GetMany(ctx, keys, func(key string, value []byte, revision uint64) {
			answered[key] = true
			add(r.read(value, key, revision, displace))
		})
		if refused != nil && !errors.Is(refused, stream.ErrRefused) { // rights written by an earlier version allow one card at a time
			return nil, fmt.Errorf("look up %d cards: %w", len(cardIDs), refused)
		}
	}
	for i, id := range cardIDs {
		if err == nil && !answered[keys[i]] {
			add(r.fetch(ctx, id, displace))
		}
	}
	return found, err
}

// missing returns the ids of the agents' newest cards that are not in the cache. It returns no
// more than the cache can take without evicting the cards that were just fetched.
func (r *Registry) missing(agents iter.Seq[string]) (cardIDs []string) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.cache.queue.Len() == len(r.byID) {
		return nil
	}
	most := r.cache.queue.Len() / 2
	if r.cache.room() {
		most = len(r.byID)
	}
	for agent := range agents {
		if entry := r.agents[agent]; entry != nil && entry.compiled() == nil {
			cardIDs = append(cardIDs, entry.CardID)
		}
	}
	slices.Sort(cardIDs)
	cardIDs = slices.Compact(cardIDs)
	return cardIDs[:min(most, len(cardIDs))]
}
