package cards

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"
	"unique"
	"unsafe"

	"github.com/plumbline/plumbline/schema"
)

// Entry is what is in memory of every registered card: all that is asked of it but what
// judging by it takes. Its exported members never change.
type Entry struct {
	CardID, AgentID string
	Digest          schema.Digest // SHA-256 of the JCS form

	version         unique.Handle[string]
	issued, expires int64                // Unix nanoseconds; expires is 0 where the card does not
	revision        uint64               // of the bucket: of two cards issued at one time, the later registered is the newer
	keys            *keyIDs              // nil: it lists no keys and carries no signature
	retentionDays   int32                // of the audit commitment
	removed         bool                 // from the bucket, by hand; under Registry.mu
	older           *Entry               // the agent's next card in order of age; under Registry.mu
	used            atomic.Bool          // since the cache looked last
	card            atomic.Pointer[Card] // nil: not in the cache
}

// keyIDs are those of a card's keys.
type keyIDs struct {
	listed   []string
	signedBy string
}

// newEntry keeps nothing of the card but copies.
func newEntry(card *schema.Card, agentID string, revision uint64) *Entry {
	entry := &Entry{
		CardID: strings.Clone(card.CardID), AgentID: agentID, Digest: card.Digest,
		version: unique.Make(card.Version), issued: card.IssuedAt.UnixNano(), revision: revision,
		retentionDays: int32(card.Audit.RetentionDays), // at most MaxRetentionDays
	}
	if !card.ExpiresAt.IsZero() {
		entry.expires = card.ExpiresAt.UnixNano()
	}
	if len(card.Keys) == 0 && card.Signature == nil {
		return entry
	}
	entry.keys = &keyIDs{}
	for _, key := range card.Keys {
		entry.keys.listed = append(entry.keys.listed, strings.Clone(key.KeyID))
	}
	if card.Signature != nil {
		entry.keys.signedBy = strings.Clone(card.Signature.KeyID)
	}
	return entry
}

// IssuedAt is in UTC.
func (e *Entry) IssuedAt() time.Time { return time.Unix(0, e.issued).UTC() }

// ExpiresAt is in UTC; zero where the card does not expire.
func (e *Entry) ExpiresAt() time.Time {
	if e.expires == 0 {
		return time.Time{}
	}
	return time.Unix(0, e.expires).UTC()
}

// Same returns ErrChanged where a card of the same id has another content.
func (e *Entry) Same(other *schema.Card) error {
	if e.Digest != other.Digest {
		return fmt.Errorf("card %q: %w", other.CardID, ErrChanged)
	}
	return nil
}

// compiled returns the card that the cache has, and notes that it is used; nil where it has
// none.
func (e *Entry) compiled() *Card {
	card := e.card.Load()
	if card != nil && !e.used.Load() {
		e.used.Store(true)
	}
	return card
}

// newer reports whether e is issued after other, or at the same time and
// registered after it.
func (e *Entry) newer(other *Entry) bool {
	if e.issued != other.issued {
		return e.issued > other.issued
	}
	return e.revision > other.revision
}

// note puts a card into the index, unless it is there; mu is locked for writing. The error
// says that another content is there under its id.
func (r *Registry) note(card *schema.Card, revision uint64) (*Entry, error) {
	if known := r.byID[card.CardID]; known != nil {
		known.removed = false
		return known, known.Same(card)
	}
	agent, newest := "", r.agents[card.AgentID]
	if newest != nil {
		agent = newest.AgentID
	} else {
		agent = strings.Clone(card.AgentID)
		r.keepHost(agent)
		r.indexBytes += agentBytes + int64(len(agent))
	}
	entry := newEntry(card, agent, revision)
	delete(r.absent, card.CardID)
	r.byID[entry.CardID] = entry
	r.indexBytes += entry.bytes()
	if newest == nil || entry.newer(newest) {
		entry.older, r.agents[agent] = newest, entry
		return entry, nil
	}
	for newest.older != nil && !entry.newer(newest.older) {
		newest = newest.older
	}
	entry.older, newest.older = newest.older, entry
	return entry, nil
}

// What the index takes beside strings, with the places in its maps and what maps leave free.
const (
	placeBytes      = 48 // of a string and a pointer in a map
	entryBytes      = int64(unsafe.Sizeof(Entry{})) + placeBytes
	agentBytes      = 2*placeBytes + 32 // as an agent, and as a host
	revocationBytes = 2*int64(unsafe.Sizeof(schema.Revocation{})) + placeBytes
)

func (e *Entry) bytes() int64 {
	bytes := entryBytes + int64(len(e.CardID))
	if e.keys == nil {
		return bytes
	}
	bytes += int64(unsafe.Sizeof(keyIDs{})) + int64(len(e.keys.signedBy))
	for _, id := range e.keys.listed {
		bytes += int64(unsafe.Sizeof(id)) + int64(len(id))
	}
	return bytes
}

// Bytes returns the memory that is taken: by the index of all cards and revocations, which
// grows with them, and by compiled cards, which is bounded.
func (r *Registry) Bytes() (index, cached int64) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.indexBytes, r.cache.bytes
}
