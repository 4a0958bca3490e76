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

// Bucket is the key-value bucket of the cards; a key is the token of a card id.
type Bucket interface {
	Get(ctx context.Context, key string) (value []byte, revision uint64, err error)
	Create(ctx context.Context, key string, value []byte) (revision uint64, err error)
	Watch(ctx context.Context, pattern string, apply func(stream.Change), ready func()) error
}

// Card is a registered card, compiled. It is immutable.
type Card struct {
	*aap.Compiled
}

// Registry looks cards up and registers them. It may be used by any goroutine.
type Registry struct {
	bucket Bucket

	mu     sync.RWMutex
	byID   map[string]*Card
	agents map[string][]*Card // each agent's cards, newest issue first
	absent map[string]time.Time
}

// absentFor is how long a card that the bucket did not have is taken to be
// absent without asking again, unless the watch brings it first.
const absentFor = time.Second

// New returns a registry over bucket. Watch keeps it current.
func New(bucket Bucket) *Registry {
	return &Registry{
		bucket: bucket,
		byID:   map[string]*Card{},
		agents: map[string][]*Card{},
		absent: map[string]time.Time{},
	}
}

// Put registers the card in raw. created is false when the same content (by its
// JCS form) is registered already. Errors: a *schema.Refusal when the card is
// not valid, ErrChanged, or the bucket's.
func (r *Registry) Put(ctx context.Context, raw []byte) (card *Card, created bool, err error) {
	compiled, err := aap.Register(raw)
	if err != nil {
		return nil, false, err
	}
	key := subject.Token(compiled.Card.CardID)
	_, err = r.bucket.Create(ctx, key, compiled.Card.Raw)
	if err == nil {
		return r.keep(compiled), true, nil
	}
	if !errors.Is(err, stream.ErrConflict) {
		return nil, false, fmt.Errorf("register card %q: %w", compiled.Card.CardID, err)
	}
	known, err := r.fetch(ctx, compiled.Card.CardID)
	if err != nil {
		return nil, false, err
	}
	if known.Card.Digest != compiled.Card.Digest {
		return nil, false, fmt.Errorf("card %q: %w", compiled.Card.CardID, ErrChanged)
	}
	return known, false, nil
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
	if time.Since(since) < absentFor {
		return nil, ErrUnknown
	}
	return r.fetch(ctx, cardID)
}

// fetch asks the bucket.
func (r *Registry) fetch(ctx context.Context, cardID string) (*Card, error) {
	raw, _, err := r.bucket.Get(ctx, subject.Token(cardID))
	if errors.Is(err, stream.ErrNotFound) {
		r.noteAbsent(cardID)
		return nil, ErrUnknown
	}
	if err != nil {
		return nil, fmt.Errorf("look up card %q: %w", cardID, err)
	}
	return r.admit(raw)
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
func (r *Registry) admit(raw []byte) (*Card, error) {
	card, err := schema.DecodeCard(bytes.Clone(raw))
	if err != nil {
		return nil, fmt.Errorf("read a registered card: %w", err)
	}
	return r.keep(aap.Compile(card)), nil
}

// Watch keeps the registry current until ctx ends. ready is called once all
// cards that are registered by now are in memory; changed is called with each
// card, these included. What cannot be read is told to refused and passed over.
func (r *Registry) Watch(ctx context.Context, changed func(*Card), ready func(), refused func(error)) error {
	return r.bucket.Watch(ctx, ">", func(change stream.Change) {
		if change.Deleted {
			return
		}
		card, err := r.admit(change.Value)
		if err != nil {
			refused(fmt.Errorf("key %s: %w", change.Key, err))
			return
		}
		changed(card)
	}, ready)
}

// keep puts a compiled card into memory; the card that is there already stays.
func (r *Registry) keep(compiled *aap.Compiled) *Card {
	r.mu.Lock()
	defer r.mu.Unlock()
	id, agent := compiled.Card.CardID, compiled.Card.AgentID
	delete(r.absent, id)
	if known := r.byID[id]; known != nil {
		return known
	}
	card := &Card{Compiled: compiled}
	r.byID[id] = card
	r.agents[agent] = insertByIssue(r.agents[agent], card)
	return card
}

// insertByIssue returns cards with card at its place; cards itself stays as it
// is, since readers may hold it.
func insertByIssue(cards []*Card, card *Card) []*Card {
	at := 0
	for at < len(cards) && cards[at].Card.IssuedAt.After(card.Card.IssuedAt) {
		at++
	}
	grown := make([]*Card, 0, len(cards)+1)
	grown = append(grown, cards[:at]...)
	grown = append(grown, card)
	return append(grown, cards[at:]...)
}
