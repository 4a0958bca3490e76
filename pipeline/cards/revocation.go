package cards

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// Revoke revokes a card as of now, in whole milliseconds. If the card was revoked before, it
// returns the first revocation, and created is false. The error is the bucket's, after which it
// is safe to try again.
func (r *Registry) Revoke(ctx context.Context, card *Entry, reason string, now time.Time) (revocation schema.Revocation, created bool, err error) {
	revocation = schema.Revocation{
		CardID: card.CardID, AgentID: card.AgentID, Reason: reason,
		RevokedAt: now.UTC().Truncate(time.Millisecond),
	}
	value, err := json.Marshal(revocation)
	if err != nil {
		return revocation, false, fmt.Errorf("revoke card %q: %w", card.CardID, err)
	}
	_, err = r.revocations.Create(ctx, subject.Token(card.CardID), value)
	created = err == nil
	if errors.Is(err, stream.ErrConflict) {
		if value, _, err = r.revocations.GetNewest(ctx, subject.Token(card.CardID)); err == nil {
			revocation, err = readRevocation(value)
		}
	}
	if err != nil {
		return revocation, false, fmt.Errorf("revoke card %q: %w", card.CardID, err)
	}
	r.noteRevocation(revocation)
	return revocation, created, nil
}

func readRevocation(value []byte) (schema.Revocation, error) {
	var revocation schema.Revocation
	if err := json.Unmarshal(value, &revocation); err != nil {
		return revocation, fmt.Errorf("read a revocation: %w", err)
	}
	if revocation.CardID == "" || revocation.RevokedAt.IsZero() {
		return revocation, errors.New("read a revocation: it lacks card_id or revoked_at")
	}
	return revocation, nil
}

// noteRevocation stores a revocation in memory. The first one stays.
func (r *Registry) noteRevocation(revocation schema.Revocation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.revoked[revocation.CardID]; known {
		return
	}
	r.revoked[revocation.CardID] = revocation
	r.indexBytes += revocationBytes + int64(len(revocation.CardID)+len(revocation.AgentID)+len(revocation.Reason))
	r.log = append(r.log, revocation)
}

// RevokedAt returns the time from which a card is revoked. The zero time means that it is not.
func (r *Registry) RevokedAt(cardID string) time.Time {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.revoked[cardID].RevokedAt
}

// Revocations returns all revocations, ordered by time and then by card id.
func (r *Registry) Revocations() []schema.Revocation {
	revocations, _ := r.RevocationsSince(0)
	revocations = slices.Clone(revocations)
	slices.SortFunc(revocations, func(a, b schema.Revocation) int {
		return cmp.Or(a.RevokedAt.Compare(b.RevokedAt), strings.Compare(a.CardID, b.CardID))
	})
	return revocations
}

// RevocationsSince returns the revocations that reached memory after the first n, and how many
// there are now. The slice belongs to the registry: do not change it.
func (r *Registry) RevocationsSince(n int) (revocations []schema.Revocation, now int) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.log[n:len(r.log):len(r.log)], len(r.log)
}
