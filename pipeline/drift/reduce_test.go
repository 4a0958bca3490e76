package drift

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aap"
	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/fleet"
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

// onlyRows is a registry that relies on the rows, and knows no card.
type onlyRows struct {
	noCards
	days map[string]uint32
}

func (onlyRows) Relies() bool                            { return true }
func (r *onlyRows) KnowRetention(days map[string]uint32) { maps.Copy(r.days, days) }

// The facts of the rows of cards are those of the cards. Rows are asked for once, and again after they were forgotten.
func TestFactsOfRowsAreThoseOfTheCards(t *testing.T) {
	rig := pipelinetest.New(t)
	var registered []*schema.Card
	agents := map[string]bool{"nobody": true}
	add := func(raw []byte) {
		t.Helper()
		card, err := schema.DecodeCard(raw)
		if err != nil {
			t.Fatal(err)
		}
		registered = append(registered, card)
		agents[card.AgentID] = true
	}
	for _, card := range fleet.New(fleet.Config{Seed: 7, Agents: 40, Traces: 40, Start: noon}).Cards() {
		add(card.Raw)
	}
	odd := strings.NewReplacer(`"bounded_actions":[`, `"bounded_actions":["it's \\ \"quoted\"",`,
		`"escalation_triggers":[]`, `"escalation_triggers":[{"condition":"tool_name == \"refund\"","action":"escalate","reason":"r"}]`).
		Replace(string(pipelinetest.Card("odd", "it's \\ odd")))
	add([]byte(odd))
	if err := rig.Store.InsertCards(t.Context(), time.Now(), registered); err != nil {
		t.Fatal(err)
	}
	registry := &onlyRows{days: map[string]uint32{}}
	r := newReducer(registry)
	for range 2 {
		unread := r.unread(maps.Keys(agents))
		if len(unread) != len(agents) {
			t.Fatalf("%d agents are to be read, want %d", len(unread), len(agents))
		}
		rows, err := rig.Store.CardFacts(t.Context(), unread)
		if err != nil {
			t.Fatal(err)
		}
		r.learn(unread, rows)
		for _, card := range registered {
			if facts, err := r.factsOf(t.Context(), card.CardID); err != nil || !reflect.DeepEqual(facts, aapdrift.FactsOf(card)) {
				t.Errorf("card %s: facts %+v, error %v; want %+v", card.CardID, facts, err, aapdrift.FactsOf(card))
			}
			if days := registry.days[card.AgentID]; days < uint32(card.Audit.RetentionDays) {
				t.Errorf("agent %s: %d days, its card commits to %d", card.AgentID, days, card.Audit.RetentionDays)
			}
		}
		if days, known := registry.days["nobody"]; !known || days != 0 {
			t.Errorf("an agent without cards: %d days, known: %v", days, known)
		}
		if len(r.policies) >= len(registered) {
			t.Errorf("%d cards have %d policies in memory: none is shared", len(registered), len(r.policies))
		}
		if unread := r.unread(maps.Keys(agents)); len(unread) > 0 {
			t.Errorf("agents %q are to be read again", unread)
		}
		r.makeRoom(maxFacts + 1)
	}
}
