package client

import (
	"errors"
	"testing"
)

func TestCardsAreReadAndRevoked(t *testing.T) {
	s, publisher := start(t,
		reply(200, `{"card_id":"a/%"}`),
		reply(200, `{"cards":[{"card_id":"a/%","state":"in_force"}]}`),
		reply(503, `{"error":"unavailable","message":"m"}`),
		reply(201, `{"card_id":"a/%","agent_id":"b","revoked_at":"2026-01-31T12:00:00Z","reason":"r"}`),
		reply(200, `{"card_id":"a/%","agent_id":"b","revoked_at":"2026-01-31T12:00:00Z","reason":"r"}`))
	if raw, err := publisher.Card(t.Context(), "a/%"); err != nil || string(raw) != `{"card_id":"a/%"}` {
		t.Errorf("the card is %s, error %v", raw, err)
	}
	if list, err := publisher.Cards(t.Context(), "did:web:a&b"); err != nil || len(list) != 1 || list[0].State != CardInForce {
		t.Errorf("the list is %+v, error %v", list, err)
	}
	for i, want := range []bool{true, false} { // the first request gets a 503 once
		revocation, created, err := publisher.Revoke(t.Context(), "a/%", `r"`)
		if err != nil || created != want || revocation.AgentID != "b" || revocation.RevokedAt.Year() != 2026 {
			t.Errorf("revocation %d: %+v, created %v, error %v", i, revocation, created, err)
		}
	}
	for i, want := range []string{"/v1/cards/a%2F%25", "/v1/cards", "/v1/cards/a%2F%25/revoke"} {
		if s.paths[i] != want {
			t.Errorf("request %d went to %s, want %s", i, s.paths[i], want)
		}
	}
	if s.bodies[2] != `{"reason":"r\""}` || s.bodies[3] != s.bodies[2] {
		t.Errorf("sent %q", s.bodies)
	}
}

func TestUnknownCardsAndBrokenAnswers(t *testing.T) {
	_, publisher := start(t, reply(404, `{"error":"unknown_card","message":"m"}`), reply(200, "{"), reply(201, "{"))
	var problem *Problem
	if _, err := publisher.Card(t.Context(), "x"); !errors.As(err, &problem) || problem.Code != 404 {
		t.Errorf("an unknown card: error %v", err)
	}
	if _, err := publisher.Cards(t.Context(), ""); err == nil || errors.As(err, &problem) && problem.Code != 404 {
		t.Errorf("an answer that breaks off: error %v", err)
	}
	if _, _, err := publisher.Revoke(t.Context(), "x", "r"); err == nil {
		t.Error("an answer that breaks off was read as a revocation")
	}
}
