package drift

import (
	"context"
	"fmt"
	"testing"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/schema"
)

// anyCard is a registry with a card for every id.
type anyCard struct {
	noCards
	card     *schema.Card // nil: an empty one
	distinct bool         // each card has a policy of its own
	lookUps  int
}

func (r *anyCard) Lookup(_ context.Context, cardID string) (*cards.Card, error) {
	r.lookUps++
	var card schema.Card
	if r.card != nil {
		card = *r.card
	}
	card.CardID = cardID
	if r.distinct {
		card.Policy = schema.DigestOf([]byte(cardID))
	}
	return &cards.Card{Compiled: &aap.Compiled{Card: &card}}, nil
}

// The numbers of remembered cards and policies are bounded, and a card that was dropped is looked up
// again.
func TestFactsAreBounded(t *testing.T) {
	card, err := schema.DecodeCard(pipelinetest.Card("ac", "a"))
	if err != nil {
		t.Fatal(err)
	}
	for _, distinct := range []bool{false, true} {
		registry := &anyCard{card: card, distinct: distinct}
		r := newReducer(registry)
		for range 2 {
			for i := range maxFacts + 10 {
				id := fmt.Sprint("ac-", i)
				if facts, err := r.factsOf(t.Context(), id); err != nil || facts.CardID != id {
					t.Fatalf("%s: %+v, error %v", id, facts, err)
				}
				if len(r.facts) > maxFacts || len(r.policies) > maxPolicies {
					t.Fatalf("%d cards and %d policies are remembered, at most %d and %d", len(r.facts), len(r.policies), maxFacts, maxPolicies)
				}
			}
		}
		if registry.lookUps <= maxFacts+10 {
			t.Errorf("%d look-ups: nothing was forgotten", registry.lookUps)
		}
	}
}
