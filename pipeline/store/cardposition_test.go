package store

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// The position recorded last counts, for one bucket; rows of the same card count once, and are read once.
func TestCardPosition(t *testing.T) {
	s, _ := open(t)
	position := func(created time.Time, revision, cards uint64) {
		t.Helper()
		gotRevision, gotCards, err := s.CardPosition(t.Context(), created)
		if err != nil || gotRevision != revision || gotCards != cards {
			t.Errorf("revision %d, %d cards, error %v; want %d and %d", gotRevision, gotCards, err, revision, cards)
		}
	}
	position(streamCreated, 0, 0)
	card := func(agent, id string, days int) *schema.Card {
		c := &schema.Card{CardID: id, AgentID: agent, IssuedAt: firstEvent, Raw: []byte("{}"), Audit: schema.Audit{RetentionDays: days}}
		if days > 0 {
			c.Values.Declared, c.Autonomy.BoundedActions, c.Autonomy.ForbiddenActions = []string{nasty, "v"}, []string{id}, []string{nasty}
			c.Autonomy.EscalationTriggers = []schema.Trigger{{Condition: nasty, Action: "escalate"}, {Condition: id, Action: "deny"}}
		}
		return c
	}
	for range 2 {
		rows := []*schema.Card{card(nasty, nasty, 90), card(nasty, "ac-2", 400), card("b", "ac-3", 0)}
		if err := s.InsertCards(t.Context(), firstReceived, rows); err != nil {
			t.Fatal(err)
		}
	}
	for _, revision := range []uint64{7, 9, 8} { // the last one is from a verifier that is behind
		if err := s.InsertCardPosition(t.Context(), streamCreated, revision); err != nil {
			t.Fatal(err)
		}
	}
	position(streamCreated, 8, 3)
	position(streamCreated.Add(1), 0, 3) // of another bucket
	found := map[string]uint32{}
	err := s.RegisteredCards(t.Context(), []string{nasty, "nobody"}, func(agentID, cardID string, retentionDays uint32) {
		if agentID != nasty {
			t.Errorf("a card of agent %q", agentID)
		}
		found[cardID] += retentionDays
	})
	if want := map[string]uint32{nasty: 90, "ac-2": 400}; err != nil || !maps.Equal(found, want) {
		t.Errorf("%v, error %v; want %v", found, err, want)
	}
	facts, err := s.CardFacts(t.Context(), []string{nasty, "b", "nobody"})
	slices.SortFunc(facts, func(a, b CardFacts) int { return cmp.Compare(a.RetentionDays, b.RetentionDays) })
	want := []CardFacts{{AgentID: "b", CardID: "ac-3", DeclaredValues: []string{}, BoundedActions: []string{}, ForbiddenActions: []string{}, Conditions: []string{}}}
	for id, days := range map[string]uint32{nasty: 90, "ac-2": 400} {
		want = append(want, CardFacts{AgentID: nasty, CardID: id, RetentionDays: days,
			DeclaredValues: []string{nasty, "v"}, BoundedActions: []string{id}, ForbiddenActions: []string{nasty}, Conditions: []string{nasty, id}})
	}
	slices.SortFunc(want, func(a, b CardFacts) int { return cmp.Compare(a.RetentionDays, b.RetentionDays) })
	if err != nil || !reflect.DeepEqual(facts, want) {
		t.Errorf("facts %+v, error %v; want %+v", facts, err, want)
	}
}

// One query finds the cards of MaxAgents, each of which has an id of the greatest length.
func TestCardsOfManyAgents(t *testing.T) {
	s, _ := open(t)
	last := strings.Repeat("\\'", schema.MaxIDBytes/2)
	card := schema.Card{CardID: "ac-1", AgentID: last, IssuedAt: firstEvent, Raw: []byte("{}"), Audit: schema.Audit{RetentionDays: 90}}
	if err := s.InsertCards(t.Context(), firstReceived, []*schema.Card{&card}); err != nil {
		t.Fatal(err)
	}
	agents := []string{last}
	for i := range MaxAgents - 1 {
		agents = append(agents, fmt.Sprintf("%d%s", 10_000+i, last[5:]))
	}
	var found []string
	err := s.RegisteredCards(t.Context(), agents, func(agentID, _ string, _ uint32) { found = append(found, agentID) })
	if err != nil || len(found) != 1 || found[0] != last {
		t.Errorf("cards of %d agents, error %v", len(found), err)
	}
	if facts, err := s.CardFacts(t.Context(), agents); err != nil || len(facts) != 1 || facts[0].AgentID != last {
		t.Errorf("facts of %d cards, error %v", len(facts), err)
	}
}
