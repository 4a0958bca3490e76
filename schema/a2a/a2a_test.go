package a2a

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/signature"
)

// agentCard is an A2A agent card with details that a careless writer would change: odd white
// space, escapes and numbers.
const agentCard = `{
  "protocolVersion": "0.3.0", "name": "Shop \u0041gent <&>",
  "url" : "https://a.example/a2a",   "version":"1.0",
  "capabilities": {"streaming": true, "extensions": [ ] },
  "skills": [{"id": "search", "weight": 1.50e0, "big": 12345678901234567890}], "signatures": [{"protected": "x"}]
}`

const cardURL = "https://a.example/.well-known/alignment-card.json"

var secret = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))

// signedCard is an oddly written Alignment Card, signed by its own key.
func signedCard(t *testing.T) []byte {
	t.Helper()
	card := `{ "aap_version": "0.1.0", "card_id": "ac-\u0031", "agent_id": "a", "issued_at": "2026-01-01T00:00:00Z",
		"principal": {"type": "human", "relationship": "advisory"}, "values": {"declared": ["honesty"]},
		"autonomy_envelope": {"bounded_actions": ["search"], "escalation_triggers": [], "max_autonomous_value": {"amount": 1.50E+2}},
		"audit_commitment": {"trace_format": "ap-trace-v1", "retention_days": 1, "queryable": false},
		"extensions": {"a2a": {"agent_card_url": "https://a.example/agent.json"}, "plumbline": {"keys": [
			{"key_id": "k", "algorithm": "Ed25519", "public_key": "` + base64.StdEncoding.EncodeToString(secret.Public().(ed25519.PublicKey)) + `"}]}} }`
	signed, err := signature.Signed([]byte(card), "k", secret)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func TestSignedCardSurvivesTheRoundTrip(t *testing.T) {
	card := signedCard(t)
	embedded, err := Embed([]byte(agentCard), append([]byte("\n"), card...))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Read(embedded)
	if err != nil || got.URL != "" {
		t.Fatalf("got %+v (%v)", got, err)
	}
	if string(got.Card.Raw) != string(card) {
		t.Errorf("the card came back as\n%s", got.Card.Raw)
	}
	if err := signature.Verify(got.Card.Raw, *got.Card.Signature, got.Card.Keys); err != nil {
		t.Error(err)
	}
	unchanged(t, embedded)
}

// unchanged checks that an agent card without its block is agentCard, byte for byte.
func unchanged(t *testing.T, withBlock []byte) {
	t.Helper()
	if rest, _, err := schema.CutMember(withBlock, Block); err != nil || string(rest) != agentCard {
		t.Errorf("the rest is\n%s\n(%v)", rest, err)
	}
}

func TestBlockHoldsCardAndURL(t *testing.T) {
	card := signedCard(t)
	both, err := Link([]byte(agentCard), cardURL)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Read(both); err != nil || got.Card != nil || got.URL != cardURL {
		t.Errorf("linked: %+v (%v)", got, err)
	}
	if both, err = Embed(both, card); err != nil {
		t.Fatal(err)
	}
	renewed := strings.Replace(string(card), `"a"`, `"b"`, 1)
	if both, err = Embed(both, []byte(renewed)); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(both); err != nil || got.URL != cardURL || string(got.Card.Raw) != renewed {
		t.Errorf("both: %+v (%v)", got, err)
	}
	unchanged(t, both)
}

func TestBlockKeepsUnknownMembers(t *testing.T) {
	foreign := strings.Replace(agentCard, `"name"`, `"alignment" : {"later": [1.0]}, "name"`, 1)
	embedded, err := Embed([]byte(foreign), signedCard(t))
	if err != nil || !strings.Contains(string(embedded), `{"later": [1.0],"alignment_card":`) {
		t.Errorf("got\n%s\n(%v)", embedded, err)
	}
}

func TestReadReportsFaults(t *testing.T) {
	with := func(block string) string {
		return strings.Replace(agentCard, `"name"`, `"alignment": `+block+`, "name"`, 1)
	}
	for name, c := range map[string]struct{ card, want string }{
		"nothing":       {agentCard, ErrNoBlock.Error()},
		"null":          {with(`null`), ErrNoBlock.Error()},
		"empty":         {with(`{}`), "neither alignment_card nor alignment_card_url"},
		"nulls":         {with(`{"alignment_card": null, "alignment_card_url": null}`), "neither"},
		"no object":     {with(`"https://a.example"`), "not a JSON object"},
		"relative URL":  {with(`{"alignment_card_url": "/card.json"}`), "is not an absolute URL"},
		"URL no text":   {with(`{"alignment_card_url": 5}`), "alignment_card_url"},
		"invalid card":  {with(`{"alignment_card": {"card_id": 5}}`), "invalid_card: /card_id"},
		"no agent card": {`[]`, "not a JSON object"},
		"twice":         {with(`{}, "alignment": {}`), "not a JSON object"},
	} {
		if got, err := Read([]byte(c.card)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %+v (%v)", name, got, err)
		}
	}
	if _, err := Read([]byte(agentCard)); !errors.Is(err, ErrNoBlock) {
		t.Errorf("got %v", err)
	}
}

func TestEmbedAndLinkRefuse(t *testing.T) {
	var refusal *schema.Refusal
	if _, err := Embed([]byte(agentCard), []byte(`{}`)); !errors.As(err, &refusal) {
		t.Errorf("no card: got %v", err)
	}
	if _, err := Embed([]byte(`"text"`), signedCard(t)); !errors.Is(err, schema.ErrNoObject) {
		t.Errorf("no agent card: got %v", err)
	}
	if _, err := Embed([]byte(`{"alignment": 5}`), signedCard(t)); !errors.Is(err, schema.ErrNoObject) {
		t.Errorf("no block: got %v", err)
	}
	for _, address := range []string{"", "card.json", "https://", "://x"} {
		if _, err := Link([]byte(agentCard), address); err == nil {
			t.Errorf("linked %q", address)
		}
	}
}

// A signature counts at any position; an empty list of signatures does not count.
func TestSigned(t *testing.T) {
	for card, want := range map[string]string{
		agentCard: "true <nil>", `{"signatures":[ ]}`: "false <nil>", `{"signatures":null}`: "false <nil>", `{}`: "false <nil>",
		`{"signatures":{}}`: "false is not an A2A agent card", `[]`: "false is not an A2A agent card", `{"a":1,"a":2}`: "false is not an A2A agent card",
	} {
		signed, err := Signed([]byte(card))
		if got := fmt.Sprint(signed, " ", err); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", card, got, want)
		}
	}
}
