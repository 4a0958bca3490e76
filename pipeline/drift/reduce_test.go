package drift

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aap"
	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
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

func (r *onlyRows) Knows(agentID string) bool {
	_, known := r.days[agentID]
	return known
}

// rowsOf reads and returns agents as a slice of their traces does.
func rowsOf(r *reducer, rows []store.CardFacts, agents ...string) (read []string) {
	read = r.unread(slices.Values(agents))
	r.learn(read, rows)
	return read
}

// An agent that the registry has forgotten, because it had no card, is read again: it may have a card now.
func TestForgottenAgentsAreReadAgain(t *testing.T) {
	registry := &onlyRows{days: map[string]uint32{}}
	r := newReducer(registry)
	rowsOf(r, nil, "a", "b")
	delete(registry.days, "a")
	if read := rowsOf(r, nil, "a", "b", "a"); !slices.Equal(read, []string{"a"}) {
		t.Errorf("agents %q are read again", read)
	}
}

// The names of agents without cards do not grow without end, and what a slice needs is not forgotten while the slice
// is reduced.
func TestReadAgentsAreBounded(t *testing.T) {
	r := newReducer(&onlyRows{days: map[string]uint32{}})
	for n := range 2 * maxFacts {
		agent := fmt.Sprint("agent-", n)
		rowsOf(r, nil, agent)
		if _, read := r.read[agent]; !read || len(r.read) > maxFacts {
			t.Fatalf("%d agents are remembered, the last one: %v", len(r.read), read)
		}
	}
	r = newReducer(&onlyRows{days: map[string]uint32{}})
	for slice := range maxPolicies / 100 {
		var agents []string
		var rows []store.CardFacts
		for n := range sliceMessages / 2 {
			agent := fmt.Sprint("agent-", slice*100+n) // all but 100 were at work before
			agents = append(agents, agent)
			rows = append(rows, store.CardFacts{AgentID: agent, CardID: agent, DeclaredValues: []string{agent}})
		}
		read := r.unread(slices.Values(agents))
		r.learn(read, slices.DeleteFunc(rows, func(row store.CardFacts) bool { return !slices.Contains(read, row.AgentID) }))
		for _, agent := range agents {
			if _, known := r.facts[agent]; !known {
				t.Fatalf("slice %d: the card of %s was forgotten while the slice is reduced", slice, agent)
			}
		}
	}
}

// After the bucket was replaced, a card may have been registered with other content under the same id. The bucket says
// what it is now, and both rows count for the retention.
func TestRowsThatDifferAreNotUsed(t *testing.T) {
	rig := pipelinetest.New(t)
	was, err := schema.DecodeCard(pipelinetest.Card("ac", "a"))
	if err != nil {
		t.Fatal(err)
	}
	is := *was
	is.Values.Declared, is.Audit.RetentionDays, is.Digest = []string{"now"}, 2*was.Audit.RetentionDays, schema.DigestOf([]byte("now"))
	registry := &replacedCard{onlyRows: onlyRows{days: map[string]uint32{}}, now: &is}
	for range 2 {
		for _, card := range []*schema.Card{&is, was} {
			if err := rig.Store.InsertCards(t.Context(), time.Now(), []*schema.Card{card}); err != nil {
				t.Fatal(err)
			}
		}
		rows, err := rig.Store.CardFacts(t.Context(), []string{"a"})
		if err != nil {
			t.Fatal(err)
		}
		r := newReducer(registry)
		r.learn([]string{"a"}, rows)
		facts, err := r.factsOf(t.Context(), "ac")
		if err != nil || !reflect.DeepEqual(facts, aapdrift.FactsOf(&is)) || registry.days["a"] != uint32(is.Audit.RetentionDays) {
			t.Errorf("facts %+v, error %v, kept for %d days; want %+v", facts, err, registry.days["a"], aapdrift.FactsOf(&is))
		}
	}
}

// replacedCard is a registry that relies on rows. Each card is what it is now.
type replacedCard struct {
	onlyRows
	now *schema.Card
}

func (r *replacedCard) Lookup(ctx context.Context, cardID string) (*cards.Card, error) {
	return (&anyCard{card: r.now}).Lookup(ctx, cardID)
}

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
