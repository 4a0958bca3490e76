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

// Entry is what memory holds for every registered card: everything except what judging by the
// card needs. Its exported members never change.
type Entry struct {
	CardID, AgentID string
	Digest          schema.Digest // SHA-256 of the JCS form

	version         unique.Handle[string]
	issued, expires int64                // Unix nanoseconds; expires is 0 if the card does not expire
	revision        uint64               // of the bucket: the higher one is newer at equal times of issue
	keys            *keyIDs              // nil: the card lists no keys and has no signature
	retentionDays   int32                // of the audit commitment
	removed         bool                 // from the bucket, manually; under Registry.mu
	older           *Entry               // the agent's next older card; under Registry.mu
	used            atomic.Bool          // since its last turn in the cache
	card            atomic.Pointer[Card] // nil: not in the cache
}

// keyIDs are the ids of a card's keys.
type keyIDs struct {
	listed   []string
	signedBy string
}

// newEntry copies what it needs and does not keep the card.
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

// IssuedAt returns the time of issue in UTC.
func (e *Entry) IssuedAt() time.Time { return time.Unix(0, e.issued).UTC() }

// ExpiresAt returns the time of expiry in UTC. It is zero if the card does not expire.
func (e *Entry) ExpiresAt() time.Time {
	if e.expires == 0 {
		return time.Time{}
	}
	return time.Unix(0, e.expires).UTC()
}

// Same returns ErrChanged if another card with the same id has different content.
func (e *Entry) Same(other *schema.Card) error {
	if e.Digest != other.Digest {
		return fmt.Errorf("card %q: %w", other.CardID, ErrChanged)
	}
	return nil
}

// compiled returns the card from the cache and marks it as used, or nil if the cache does not
// have it.
func (e *Entry) compiled() *Card {
	card := e.card.Load()
	if card != nil && !e.used.Load() {
		e.used.Store(true)
	}
	return card
}

// newer reports whether e was issued after other, or at the same time and registered after it.
func (e *Entry) newer(other *Entry) bool {
	if e.issued != other.issued {
		return e.issued > other.issued
	}
	return e.revision > other.revision
}

// note adds a card to the index unless it is already there. The caller has locked mu for writing.
// The error means that the index has other content under the card's id.
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

// The memory of the index in addition to strings, including its places in maps and their free
// places.
const (
	placeBytes      = 48 // a string and a pointer in a map
	entryBytes      = int64(unsafe.Sizeof(Entry{})) + placeBytes
	agentBytes      = 2*placeBytes + 32 // as an agent, and under a host
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
