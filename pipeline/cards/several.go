package cards

import (
	"context"
	"errors"
	"iter"
	"slices"

	"golang.org/x/sync/errgroup"
)

// fetchesAtOnce is how many cards are fetched in parallel.
const fetchesAtOnce = 64

// LookupAll returns the cards with the ids, without unknown ones. Cards from the bucket evict
// nothing from memory.
func (r *Registry) LookupAll(ctx context.Context, cardIDs []string) ([]*Card, error) {
	return r.lookAll(ctx, cardIDs, false)
}

// Warm fetches the newest cards of agents that will be looked up, unless they are in memory. A
// card that cannot be fetched is left to Lookup, which reports the error.
func (r *Registry) Warm(ctx context.Context, agents iter.Seq[string]) {
	_, _ = r.lookAll(ctx, r.missing(agents), true)
}

// lookAll looks cards up in parallel, until a lookup fails.
func (r *Registry) lookAll(ctx context.Context, cardIDs []string, displace bool) ([]*Card, error) {
	found := make([]*Card, len(cardIDs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fetchesAtOnce)
	for i, id := range cardIDs {
		group.Go(func() error {
			card, err := r.look(ctx, id, displace)
			if errors.Is(err, ErrUnknown) {
				return nil
			}
			found[i] = card
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(card *Card) bool { return card == nil }), nil
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
