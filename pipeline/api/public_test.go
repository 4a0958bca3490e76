package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/request"
	jsonschema "github.com/plumbline/plumbline/schema/json"
)

const (
	currentPath    = "/.well-known/alignment-card.json"
	revocationPath = "/.well-known/alignment-card-revocations.json"
)

// dated returns a valid card that was issued some hours ago. members are additional members.
func dated(agent, id string, hours int, members ...string) string {
	issued := time.Now().Add(-time.Duration(hours) * time.Hour).UTC().Format(time.RFC3339)
	text := strings.Replace(card(agent, id), "2026-01-01T00:00:00Z", issued, 1)
	for _, member := range members {
		text = strings.TrimSuffix(text, "}") + "," + member + "}"
	}
	return text
}

// expiring returns the member that makes a card expire in some hours.
func expiring(hours int) string {
	return fmt.Sprintf(`"expires_at":%q`, time.Now().Add(time.Duration(hours)*time.Hour).UTC().Format(time.RFC3339))
}

// register registers a card, which must be new.
func (r *rig) register(text string, headers ...string) {
	r.t.Helper()
	var ids struct {
		CardID string `json:"card_id"`
	}
	if err := json.Unmarshal([]byte(text), &ids); err != nil {
		r.t.Fatal(err)
	}
	if answer := r.putCard(ids.CardID, text, headers...); answer.code != http.StatusCreated {
		r.t.Fatalf("the answer is %d %s", answer.code, answer.text)
	}
}

func (r *rig) revoke(id, body string, headers ...string) reply {
	r.t.Helper()
	return r.send(http.MethodPost, "/v1/cards/"+url.PathEscape(id)+"/revoke", strings.NewReader(body),
		append([]string{"Content-Type: application/json"}, headers...)...)
}

// ask sends a request with the given Host.
func (r *rig) ask(host, path string, headers ...string) reply {
	r.t.Helper()
	return r.send(http.MethodGet, path, nil, append([]string{"Host: " + host}, headers...)...)
}

func TestCurrentCardOfTheHost(t *testing.T) {
	r := start(t)
	texts := map[string]string{}
	for _, agent := range []string{"did:web:shop.example", "did:web:shop.example%3A8443", "https://[2001:db8::1]:8080/", "urn:uuid:1"} {
		texts[agent] = " " + dated(agent, "of "+agent, 1) + "\n" // surrounding white space is not part of the card
		r.register(texts[agent])
	}
	for name, c := range map[string]struct{ host, query, want string }{
		"the host":               {"shop.example", "", "did:web:shop.example"},
		"capital letters":        {"SHOP.example", "", "did:web:shop.example"},
		"its port":               {"shop.example:8443", "", "did:web:shop.example%3A8443"},
		"another port":           {"shop.example:1234", "", "did:web:shop.example"},
		"IPv6":                   {"[2001:db8:0::1]:8080", "", "https://[2001:db8::1]:8080/"},
		"another host, by agent": {"elsewhere.example", "?agent_id=urn:uuid:1", "urn:uuid:1"},
		"escaped agent":          {"127.0.0.1", "?agent_id=" + url.QueryEscape("did:web:shop.example%3A8443"), "did:web:shop.example%3A8443"},
		"a host is its own":      {"shop.example", "?agent_id=urn:uuid:1", "did:web:shop.example"},
	} {
		answer := r.ask(c.host, currentPath+c.query)
		if answer.code != http.StatusOK || answer.text != strings.TrimSpace(texts[c.want]) {
			t.Errorf("%s: the answer is %d %s, want %s", name, answer.code, answer.text, texts[c.want])
		}
		if got := answer.header.Get("Content-Type"); got != "application/aap-alignment-card+json; version=0.1.0" {
			t.Errorf("%s: Content-Type %q", name, got)
		}
	}
}

func TestNoCurrentCard(t *testing.T) {
	r := start(t)
	r.register(dated("did:web:gone.example", "1", 48, expiring(-24)))
	r.register(dated("did:web:gone.example", "2", 24))
	r.register(dated("did:web:gone.example", "3", -24))
	if answer := r.revoke("2", `{"reason":"key lost"}`); answer.code != http.StatusCreated {
		t.Fatalf("the answer is %d %s", answer.code, answer.text)
	}
	for name, c := range map[string]struct{ host, query, want string }{
		"unknown host":         {"nobody.example:8080", "", `did:web:nobody.example%3A8080`},
		"says how to ask":      {"nobody.example", "", "?agent_id=AGENT"},
		"unknown agent":        {"nobody.example", "?agent_id=urn:nobody", `agent_id \"urn:nobody\": it has registered no card`},
		"none in force":        {"gone.example", "", `host \"gone.example\" is agent \"did:web:gone.example\": of its 3 cards 1 are revoked, 1 expired and 1 not yet issued`},
		"likewise by agent id": {"x", "?agent_id=did:web:gone.example", "of its 3 cards 1 are revoked"},
		"a long agent id":      {"x", "?agent_id=" + strings.Repeat("a", 5000), "it has registered no card"},
	} {
		answer := r.ask(c.host, currentPath+c.query)
		if p := answer.problem(t); answer.code != http.StatusNotFound || p.Word != "no_card" || !strings.Contains(answer.text, c.want) {
			t.Errorf("%s: the answer is %d %s, want %s", name, answer.code, answer.text, c.want)
		}
		if len(answer.text) > 2000 || answer.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d bytes, Cache-Control %q", name, len(answer.text), answer.header.Get("Cache-Control"))
		}
	}
}

// TestOlderCardIsServedAgain checks that an older card is current again when the newer ones have
// expired or were revoked.
func TestOlderCardIsServedAgain(t *testing.T) {
	r := start(t)
	old := dated("did:web:shop.example", "old", 72)
	r.register(old)
	r.register(dated("did:web:shop.example", "expired", 48, expiring(-1)))
	r.register(dated("did:web:shop.example", "revoked", 24))
	served := func() string { return r.ask("shop.example", currentPath).text }
	if got := served(); !strings.Contains(got, `"card_id":"revoked"`) {
		t.Errorf("served: %s", got)
	}
	if answer := r.revoke("revoked", `{"reason":"r"}`); answer.code != http.StatusCreated {
		t.Fatal(answer.text)
	}
	if got := served(); got != old {
		t.Errorf("served: %s, want the oldest", got)
	}
}

func TestConditionalRequests(t *testing.T) {
	r := start(t)
	r.register(dated("did:web:shop.example", "1", 1))
	first := r.ask("shop.example", currentPath)
	tag := first.header.Get("ETag")
	registered := r.putCard("1", first.text)
	if want := `"digest":` + tag; !strings.Contains(registered.text, want) {
		t.Errorf("ETag is %s, the card %s", tag, registered.text)
	}
	if got := first.header.Get("Cache-Control"); got != "public, max-age=60" {
		t.Errorf("Cache-Control %q", got)
	}
	for match, want := range map[string]int{
		tag: http.StatusNotModified, `"x", W/` + tag: http.StatusNotModified, "*": http.StatusNotModified, `"x"`: http.StatusOK,
	} {
		for _, path := range []string{currentPath, "/v1/cards/1"} {
			answer := r.ask("shop.example", path, "If-None-Match: "+match)
			if answer.code != want || (answer.text == "") != (want == http.StatusNotModified) || answer.header.Get("ETag") != tag {
				t.Errorf("%s, If-None-Match %s: the answer is %d %s", path, match, answer.code, answer.text)
			}
		}
	}
	list := r.ask("x", revocationPath)
	if again := r.ask("x", revocationPath, "If-None-Match: "+list.header.Get("ETag")); again.code != http.StatusNotModified {
		t.Errorf("revocations: %d", again.code)
	}
	r.revoke("1", `{"reason":"r"}`)
	if again := r.ask("x", revocationPath, "If-None-Match: "+list.header.Get("ETag")); again.code != http.StatusOK {
		t.Errorf("revocations after one more: %d", again.code)
	}
}

// TestCardsOfTheOtherShape checks cards that number their versions differently. Their media type
// has no version.
func TestCardsOfTheOtherShape(t *testing.T) {
	r := start(t)
	text := `{"card_version":"unified/2026-04-26","card_id":"u","agent_id":"did:web:u.example","issued_at":"2026-01-01T00:00:00Z",` +
		`"principal":{"type":"unspecified","relationship":"autonomous"},"values":{"declared":["honesty"]},` +
		`"autonomy":{"bounded_actions":["search"]},"audit":{"retention_days":90,"queryable":false}}`
	r.register(text)
	answer := r.ask("u.example", currentPath)
	if got := answer.header.Get("Content-Type"); answer.text != text || got != request.TypeCard {
		t.Errorf("the answer is %d %s as %q", answer.code, answer.text, got)
	}
}

func TestCardsAreListed(t *testing.T) {
	r := start(t, withTokens(t, "shop did:web:shop,fleet-* cards:write,cards:read", "clerk did:web:bank cards:read,cards:write"))
	shop, clerk := bearing("shop"), bearing("clerk")
	r.register(dated("did:web:shop", "a/1%", 48, expiring(1)), shop)
	r.register(dated("did:web:shop", "a2", 24), shop)
	r.register(dated("fleet-1", "f", 24, expiring(-1)), shop)
	r.register(dated("did:web:bank", "b", -24), clerk)
	if answer := r.revoke("a2", `{"reason":"<key> lost"}`, shop); answer.code != http.StatusCreated {
		t.Fatal(answer.text)
	}
	list := func(query, token string) (ids, states []string) {
		t.Helper()
		answer := r.send(http.MethodGet, "/v1/cards"+query, nil, token)
		var read struct {
			Cards []cards.Listing `json:"cards"`
		}
		if err := json.Unmarshal([]byte(answer.text), &read); err != nil || answer.code != http.StatusOK {
			t.Fatalf("the answer is %d %s: %v", answer.code, answer.text, err)
		}
		for _, c := range read.Cards {
			ids, states = append(ids, c.CardID), append(states, string(c.State))
			if (c.State == "revoked") != (c.Reason == "<key> lost" && !c.RevokedAt.IsZero()) {
				t.Errorf("listed as %+v", c)
			}
		}
		return ids, states
	}
	if ids, states := list("", shop); fmt.Sprint(ids, states) != "[a2 a/1% f] [revoked in_force expired]" {
		t.Errorf("the shop sees %v %v", ids, states)
	}
	if ids, states := list("", clerk); fmt.Sprint(ids, states) != "[b] [not_yet_issued]" {
		t.Errorf("the clerk sees %v %v", ids, states)
	}
	if ids, _ := list("?agent_id=did:web:shop", shop); fmt.Sprint(ids) != "[a2 a/1%]" {
		t.Errorf("the shop asks for itself: %v", ids)
	}
	if ids, _ := list("?agent_id=fleet-9", shop); len(ids) != 0 {
		t.Errorf("an agent without cards: %v", ids)
	}
	if answer := r.send(http.MethodGet, "/v1/cards?agent_id=did:web:bank", nil, shop); answer.code != http.StatusForbidden {
		t.Errorf("another's cards: the answer is %d %s", answer.code, answer.text)
	}
	if answer := r.send(http.MethodGet, "/v1/cards/"+url.PathEscape("a/1%"), nil, shop); answer.code != http.StatusOK ||
		answer.header.Get("Cache-Control") != "private, max-age=60" || !strings.Contains(answer.text, `"card_id":"a/1%"`) {
		t.Errorf("one card: the answer is %d %s", answer.code, answer.text)
	}
	if answer := r.send(http.MethodGet, "/v1/cards/b", nil, shop); answer.code != http.StatusForbidden {
		t.Errorf("another's card: the answer is %d %s", answer.code, answer.text)
	}
	if answer := r.send(http.MethodGet, "/v1/cards/nothing", nil, shop); answer.code != http.StatusNotFound || answer.problem(t).Word != "unknown_card" {
		t.Errorf("an unknown card: the answer is %d %s", answer.code, answer.text)
	}
	if answer := r.ask("x", currentPath+"?agent_id=did:web:shop"); answer.code != http.StatusOK {
		t.Errorf("the current card needs no token: the answer is %d %s", answer.code, answer.text)
	}
	if answer := r.ask("x", revocationPath); answer.code != http.StatusOK {
		t.Errorf("revocations need no token: the answer is %d %s", answer.code, answer.text)
	}
}

// Everybody may read the schemas.
func TestSchemasArePublic(t *testing.T) {
	r := start(t, withTokens(t, "secret agent-a traces:write"))
	list := r.send(http.MethodGet, "/v1/schemas", nil)
	var index struct {
		Schemas []struct{ Name, ID, Title, URL string }
	}
	if err := json.Unmarshal([]byte(list.text), &index); err != nil || list.code != http.StatusOK {
		t.Fatalf("the answer is %d %s: %v", list.code, list.text, err)
	}
	documents := jsonschema.Documents()
	if len(index.Schemas) != len(documents) {
		t.Fatalf("%d schemas are listed, want %d", len(index.Schemas), len(documents))
	}
	for i, entry := range index.Schemas {
		if entry.Name != documents[i].Name || entry.ID != documents[i].ID || entry.Title == "" {
			t.Errorf("listed as %+v", entry)
		}
		got := r.send(http.MethodGet, entry.URL, nil)
		if got.code != http.StatusOK || got.text != string(documents[i].Text) || got.header.Get("Content-Type") != "application/schema+json" {
			t.Errorf("%s: %d %v", entry.URL, got.code, got.header)
		}
		again := r.send(http.MethodGet, entry.URL, nil, `If-None-Match: "other", `+got.header.Get("ETag"))
		if again.code != http.StatusNotModified || again.text != "" {
			t.Errorf("%s, known to the client: %d %q", entry.URL, again.code, again.text)
		}
		if head := r.send(http.MethodHead, entry.URL, nil); head.code != http.StatusOK || head.text != "" {
			t.Errorf("HEAD %s: %d %q", entry.URL, head.code, head.text)
		}
	}
	if none := r.send(http.MethodGet, "/v1/schemas/trace", nil); none.code != http.StatusNotFound || none.problem(t).Word != "unknown" {
		t.Errorf("no such schema: the answer is %d %s", none.code, none.text)
	}
}
