package ingest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// uncached makes a service keep no compiled card in memory.
func uncached(s *server) { s.cfg.Cards.CacheBytes = 0 }

// Requests about cards get the same answers whether or not the cards are in memory.
func TestCardsBeyondTheCache(t *testing.T) {
	const agent = "did:web:shop.example"
	var answers [2][]string
	for i, change := range []func(*server){func(*server) {}, uncached} {
		r := start(t, wired(change))
		note := func(answer reply) {
			answers[i] = append(answers[i], fmt.Sprint(answer.code, answer.header["Etag"], answer.header["Content-Type"], answer.text))
		}
		note(r.putCard("card-1", card(agent, "card-1")))
		note(r.putCard("card-2", strings.Replace(card(agent, "card-2"), "2026-01-01", "2026-02-01", 1)))
		note(r.putCard("card-1", card(agent, "card-1")))
		note(r.putCard("card-1", card("did:web:other", "card-1")))
		note(r.post(trace(agent, "t-1")))
		for _, path := range []string{"/v1/cards/card-1", "/v1/cards/none", "/v1/cards", "/v1/cards?agent_id=" + agent, "/.well-known/alignment-card.json?agent_id=" + agent} {
			note(r.send(http.MethodGet, path, nil))
		}
		if gone := r.send(http.MethodPost, "/v1/cards/card-2/revoke", strings.NewReader(`{"reason":"lost"}`), "Content-Type: application/json"); gone.code != http.StatusCreated {
			t.Errorf("revoked: %d %s", gone.code, gone.text)
		}
		note(r.send(http.MethodGet, "/.well-known/alignment-card.json?agent_id="+agent, nil))
		if _, cached := r.server.cards.Bytes(); (cached > 0) != (i == 0) {
			t.Errorf("%d bytes of cards are in memory", cached)
		}
	}
	for i, with := range answers[0] {
		if without := answers[1][i]; with != without {
			t.Errorf("with a cache\n%s\nwithout\n%s", with, without)
		}
	}
}

// When the index of all cards has reached its memory limit, new cards are refused with that
// reason. Registered cards remain, and can be revoked. Traces are accepted.
func TestFullIndexRefusesNewCards(t *testing.T) {
	r := start(t)
	if first := r.putCard("card-1", card("did:web:a", "card-1")); first.code != http.StatusCreated {
		t.Fatalf("%d %s", first.code, first.text)
	}
	index, _ := r.server.cards.Bytes()
	r.server.cfg.MaxCardIndexBytes = index
	refused := r.putCard("card-2", card("did:web:a", "card-2"))
	if p := refused.problem(t); refused.code != http.StatusInsufficientStorage || p.Word != "cards_full" || !strings.Contains(refused.text, "max_card_index_bytes") {
		t.Errorf("%d %s", refused.code, refused.text)
	}
	if again := r.putCard("card-1", card("did:web:a", "card-1")); again.code != http.StatusOK {
		t.Errorf("the registered card: %d %s", again.code, again.text)
	}
	if posted := r.post(trace("did:web:a", "t-1")); posted.code != http.StatusOK {
		t.Errorf("a trace: %d %s", posted.code, posted.text)
	}
	if gone := r.send(http.MethodPost, "/v1/cards/card-1/revoke", strings.NewReader(`{"reason":"lost"}`), "Content-Type: application/json"); gone.code != http.StatusCreated {
		t.Errorf("its revocation: %d %s", gone.code, gone.text)
	}
	r.server.cfg.MaxCardIndexBytes = 2 * index
	if raised := r.putCard("card-2", card("did:web:a", "card-2")); raised.code != http.StatusCreated {
		t.Errorf("under a higher limit: %d %s", raised.code, raised.text)
	}
}
