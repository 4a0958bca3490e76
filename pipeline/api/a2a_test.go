package api

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema/a2a"
)

const agentCardPath = "/.well-known/agent-card.json"

// withAgentCard makes the stage serve an A2A agent card for an agent.
func withAgentCard(t *testing.T, agent, text string) func(*setup) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "agent-card.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(cfg *setup) { cfg.A2AAgentCards = []string{agent + "=" + file} }
}

func TestAgentCardHoldsTheCurrentCard(t *testing.T) {
	const agent = "did:web:shop.example"
	r := start(t, withAgentCard(t, agent, `{"name": "Shop", "url":"https://shop.example/a2a"}`))
	if answer := r.ask("shop.example", agentCardPath); answer.code != http.StatusNotFound || answer.problem(t).Word != "no_agent_card" {
		t.Errorf("before a card is registered: the answer is %d %s", answer.code, answer.text)
	}
	r.register(dated(agent, "1", 2))
	r.register(dated(agent, "2", 1))
	r.register(dated("did:web:other.example", "3", 1))
	for name, c := range map[string]struct{ host, query string }{
		"by host": {"shop.example", ""}, "by agent": {"x", "?agent_id=" + agent},
	} {
		answer := r.ask(c.host, agentCardPath+c.query)
		alignment, err := a2a.Read([]byte(answer.text))
		if err != nil || alignment.Card == nil || alignment.Card.CardID != "2" || !strings.HasPrefix(answer.text, `{"name": "Shop", "url":"https://shop.example/a2a"`) {
			t.Errorf("%s: the answer is %d %s, error %v", name, answer.code, answer.text, err)
		}
		if got := answer.header.Get("Content-Type"); got != "application/json" {
			t.Errorf("%s: Content-Type %q", name, got)
		}
		again := r.ask(c.host, agentCardPath+c.query, "If-None-Match: "+answer.header.Get("ETag"))
		if again.code != http.StatusNotModified {
			t.Errorf("%s: asked again: %d", name, again.code)
		}
	}
	if answer := r.revoke("2", `{"reason":"key lost"}`); answer.code != http.StatusCreated {
		t.Fatal(answer.text)
	}
	if answer := r.ask("shop.example", agentCardPath); !strings.Contains(answer.text, `"card_id":"1"`) {
		t.Errorf("after a revocation: %s", answer.text)
	}
	if answer := r.ask("other.example", agentCardPath); answer.code != http.StatusNotFound {
		t.Errorf("of an agent without an A2A agent card: the answer is %d %s", answer.code, answer.text)
	}
}

func TestAgentCardsThatCannotBeServed(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	_, err := readAgentCards([]string{
		"no-file", "a=" + filepath.Join(dir, "nowhere.json"), "b=" + file("list.json", "[]"),
		"c=" + file("signed.json", `{"name":"C","signatures":[{"protected":"x"}]}`),
		"d=" + file("good.json", "{}"), "d=" + file("good.json", "{}"),
	})
	if err == nil {
		t.Fatal("the entries were accepted")
	}
	for _, want := range []string{`"no-file": want AGENT=FILE`, "nowhere.json", "list.json: is not an A2A agent card", "the agent card is signed", "another file is given for this agent"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}
