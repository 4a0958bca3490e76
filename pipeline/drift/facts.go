package drift

import (
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// The reducer keeps the facts of so many cards, some 120 bytes for each, of so many policies, and the names of maxFacts
// agents. It exceeds this only by what the rows of one slice have. Other cards are looked up.
const (
	maxFacts    = 131_072
	maxPolicies = 4096
)

// factsOf returns what is known about a card now. A trace that arrived before its card is
// measured without it.
func (r *reducer) factsOf(ctx context.Context, cardID string) (aapdrift.CardFacts, error) {
	if facts, ok := r.facts[cardID]; ok {
		return facts, nil
	}
	card, err := r.registry.Lookup(ctx, cardID)
	if errors.Is(err, cards.ErrUnknown) {
		return aapdrift.CardFacts{CardID: strings.Clone(cardID)}, nil
	}
	if err != nil {
		return aapdrift.CardFacts{}, err
	}
	r.makeRoom(1)
	return r.remember(cardID, card.Card.Policy, func() aapdrift.CardFacts { return aapdrift.FactsOf(card.Card) }), nil
}

// unread returns those of a slice's agents whose rows of cards are to be read before their traces are reduced. There
// are none unless the registry relies on the rows. The registry forgets agents without cards; one of them may have a
// card now. What is to be forgotten here is forgotten before, because traces of the slice may need it.
func (r *reducer) unread(agents iter.Seq[string]) []string {
	if !r.registry.Relies() {
		return nil
	}
	r.makeRoom(sliceMessages)
	unread := map[string]struct{}{}
	for agent := range agents {
		if _, read := r.read[agent]; !read || !r.registry.Knows(agent) {
			unread[agent] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(unread))
}

// learn takes over the rows of cards of some agents. A row is what the bucket had under the card's id, so no card
// needs to be read from there: that takes the broker seconds where a million agents have a card each (ADR 31). Rows
// that differ under one id were read from two buckets, the earlier of which was replaced: the bucket says which counts.
func (r *reducer) learn(agents []string, rows []store.CardFacts) {
	days := make(map[string]uint32, len(agents))
	for _, agent := range agents {
		r.read[strings.Clone(agent)], days[agent] = struct{}{}, 0
	}
	found := make(map[string]int, len(rows)) // rows by card id
	for i := range rows {
		found[rows[i].CardID]++
	}
	for i := range rows {
		row := &rows[i]
		days[row.AgentID] = max(days[row.AgentID], row.RetentionDays)
		if found[row.CardID] > 1 {
			continue
		}
		r.remember(row.CardID, digestOf(row), func() aapdrift.CardFacts {
			return aapdrift.NewFacts("", row.DeclaredValues, row.BoundedActions, row.ForbiddenActions, row.Conditions)
		})
	}
	r.registry.KnowRetention(days)
}

// digestOf returns the same digest for the cards that have the same facts.
func digestOf(row *store.CardFacts) schema.Digest {
	var text []byte
	for _, list := range [][]string{row.DeclaredValues, row.BoundedActions, row.ForbiddenActions, row.Conditions} {
		text = binary.AppendUvarint(text, uint64(len(list)))
		for _, item := range list {
			text = append(binary.AppendUvarint(text, uint64(len(item))), item...)
		}
	}
	return schema.DigestOf(text)
}

// makeRoom forgets all facts unless there is room for those of so many more cards and agents.
func (r *reducer) makeRoom(more int) {
	if len(r.facts)+more > maxFacts || len(r.policies)+more > maxPolicies || len(r.read)+more > maxFacts {
		clear(r.facts)
		clear(r.policies)
		clear(r.read)
	}
}

// remember adds the facts of a card, which it shares with the cards of the same policy.
func (r *reducer) remember(cardID string, policy schema.Digest, factsOf func() aapdrift.CardFacts) aapdrift.CardFacts {
	facts, shared := r.policies[policy]
	if !shared {
		facts = factsOf()
		r.policies[policy] = facts
	}
	facts.CardID = strings.Clone(cardID)
	r.facts[facts.CardID] = facts
	return facts
}
