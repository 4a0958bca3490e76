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
	lookUps int
}

func (r *anyCard) Lookup(_ context.Context, cardID string) (*cards.Card, error) {
	r.lookUps++
	card, err := schema.DecodeCard(pipelinetest.Card(cardID, "a"))
	return &cards.Card{Compiled: &aap.Compiled{Card: card}}, err
}

// The number of remembered cards is bounded, and a card that was dropped is looked up again.
func TestFactsAreBounded(t *testing.T) {
	registry := &anyCard{}
	r := newReducer(registry)
	for range 2 {
		for i := range maxFacts + 10 {
			id := fmt.Sprint("ac-", i)
			if facts, err := r.factsOf(t.Context(), id); err != nil || facts.CardID != id {
				t.Fatalf("%s: %+v, error %v", id, facts, err)
			}
			if len(r.facts) > maxFacts {
				t.Fatalf("%d cards are remembered, at most %d", len(r.facts), maxFacts)
			}
		}
	}
	if registry.lookUps <= maxFacts+10 {
		t.Errorf("%d look-ups: nothing was forgotten", registry.lookUps)
	}
}
