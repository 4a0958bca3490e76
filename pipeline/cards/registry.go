package cards

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// Errors that callers act upon.
var (
	// ErrUnknown: no card is registered under this id.
	ErrUnknown = errors.New("no card is registered under this id")
	// ErrChanged: another content is registered under this card id; a new version
	// of a card needs a new card_id.
	ErrChanged = errors.New("another content is registered under this card_id; a new version needs a new card_id")
)

// Bucket is a key-value bucket, of the cards or of their revocations; a key is
// the token of a card id.
type Bucket interface {
	Get(ctx context.Context, key string) (value []byte, revision uint64, err error)
	Create(ctx context.Context, key string, value []byte) (revision uint64, err error)
	Watch(ctx context.Context, pattern string, apply func(stream.Change), ready func()) error
}

// Card is a registered card, compiled. It is immutable.
type Card struct {
	*aap.Compiled
	revision uint64 // of the bucket: of two cards issued at one time, the later registered is the newer
}

// Registry looks cards up, registers and revokes them. It may be used by any
// goroutine.
type Registry struct {
	bucket      Bucket
	revocations Bucket

	mu      sync.RWMutex
	byID    map[string]*Card
	agents  map[string][]*Card  // each agent's cards, newest first
	hosts   map[string][]string // agents by the host that their ids name
	absent  map[string]time.Time
	revoked map[string]schema.Revocation // by card id
	log     []schema.Revocation          // the same, in order of arrival
}

// absentFor is how long a card that the bucket did not have is taken to be
// absent without asking again, unless the watch brings it first.
const absentFor = time.Second

// Open returns the registry of a broker. Watch keeps it current.
func Open(ctx context.Context, broker *stream.Client) (*Registry, error) {
	cards, err := broker.Bucket(ctx, stream.Cards)
	if err != nil {
		return nil, err
	}
	revocations, err := broker.Bucket(ctx, stream.Revocations)
	if err != nil {
		return nil, err
	}
	return New(cards, revocations), nil
}

// New returns a registry over its two buckets. Watch keeps it current.
func New(cards, revocations Bucket) *Registry {
	return &Registry{
		bucket:      cards,
		revocations: revocations,
		byID:        map[string]*Card{},
		agents:      map[string][]*Card{},
		hosts:       map[string][]string{},
		absent:      map[string]time.Time{},
		revoked:     map[string]schema.Revocation{},
	}
}

// Put registers the card in raw, which carries no signature or one by its own
// keys. Otherwise as Add; a card that is not valid is a *schema.Refusal.
func (r *Registry) Put(ctx context.Context, raw []byte) (card *Card, created bool, err error) {
	compiled, err := aap.Register(raw)
	if err != nil {
		return nil, false, err
	}
	return r.Add(ctx, compiled)
}

// Add registers a card. created is false when the same content (by its JCS form)
// is registered already. Errors: ErrChanged, or the bucket's.
func (r *Registry) Add(ctx context.Context, compiled *aap.Compiled) (card *Card, created bool, err error) {
	revision, err := r.bucket.Create(ctx, subject.Token(compiled.Card.CardID), compiled.Card.Raw)
	if err == nil {
		return r.keep(compiled, revision), true, nil
	}
	if !errors.Is(err, stream.ErrConflict) {
		return nil, false, fmt.Errorf("register card %q: %w", compiled.Card.CardID, err)
	}
	known, err := r.fetch(ctx, compiled.Card.CardID)
	if err != nil {
		return nil, false, err
	}
	return known, false, known.Same(compiled.Card)
}

// Same returns ErrChanged where other, of the same id, has another content.
func (c *Card) Same(other *schema.Card) error {
	if c.Card.Digest != other.Digest {
		return fmt.Errorf("card %q: %w", other.CardID, ErrChanged)
	}
	return nil
}

// Lookup returns the card with the id, from memory or else from the bucket.
// Errors: ErrUnknown, or the bucket's.
func (r *Registry) Lookup(ctx context.Context, cardID string) (*Card, error) {
	r.mu.RLock()
	card, since := r.byID[cardID], r.absent[cardID]
	r.mu.RUnlock()
	if card != nil {
		return card, nil
	}
	if time.Since(since) < absentFor || len(cardID) > schema.MaxIDBytes {
		return nil, ErrUnknown
	}
	return r.fetch(ctx, cardID)
}

// fetch asks the bucket.
func (r *Registry) fetch(ctx context.Context, cardID string) (*Card, error) {
	raw, revision, err := r.bucket.Get(ctx, subject.Token(cardID))
	if errors.Is(err, stream.ErrNotFound) {
		r.noteAbsent(cardID)
		return nil, ErrUnknown
	}
	if err != nil {
		return nil, fmt.Errorf("look up card %q: %w", cardID, err)
	}
	return r.admit(raw, revision)
}

// maxAbsent bounds the memory of look-ups in vain.
const maxAbsent = 10_000

func (r *Registry) noteAbsent(cardID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.absent) >= maxAbsent {
		clear(r.absent)
	}
	r.absent[strings.Clone(cardID)] = time.Now()
}

// admit compiles a stored card and keeps it.
func (r *Registry) admit(raw []byte, revision uint64) (*Card, error) {
	card, err := schema.DecodeCard(bytes.Clone(raw))
	if err != nil {
		return nil, fmt.Errorf("read a registered card: %w", err)
	}
	return r.keep(aap.Compile(card), revision), nil
}

// keep puts a compiled card into memory; the card that is there already stays.
func (r *Registry) keep(compiled *aap.Compiled, revision uint64) *Card {
	r.mu.Lock()
	defer r.mu.Unlock()
	id, agent := compiled.Card.CardID, compiled.Card.AgentID
	delete(r.absent, id)
	if known := r.byID[id]; known != nil {
		return known
	}
	card := &Card{Compiled: compiled, revision: revision}
	r.byID[id] = card
	if len(r.agents[agent]) == 0 {
		r.keepHost(agent)
	}
	r.agents[agent] = insertNewest(r.agents[agent], card)
	return card
}

// newer tells whether c is issued after other, or at the same time and
// registered after it.
func (c *Card) newer(other *Card) bool {
	if order := c.Card.IssuedAt.Compare(other.Card.IssuedAt); order != 0 {
		return order > 0
	}
	return c.revision > other.revision
}

// insertNewest returns cards with card at its place; cards itself stays as it
// is, since readers may hold it.
func insertNewest(cards []*Card, card *Card) []*Card {
	at := 0
	for at < len(cards) && cards[at].newer(card) {
		at++
	}
	grown := make([]*Card, 0, len(cards)+1)
	grown = append(grown, cards[:at]...)
	grown = append(grown, card)
	return append(grown, cards[at:]...)
}
