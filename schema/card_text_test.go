package schema

import (
	"strings"
	"testing"
	"unicode"
)

func TestCardText(t *testing.T) {
	c, err := DecodeCard([]byte(goodCard))
	if err != nil {
		t.Fatal(err)
	}
	const want = `Alignment card ac-1
  agent         did:web:a.example
  issued        2026-01-01T00:00:00Z
  expires       2026-12-31T21:59:59.5Z
  version       0.1.0
  digest        DIGEST
  signature     none: the author cannot be verified

Principal: human, advisory (recommends, and the principal decides)
  escalate to   mailto:u@example.com

Values (conflicts between them: weighted)
  declared      honesty
                thrift
  thrift: Spend little
    priority    2
  refuses       waste

Autonomy
  on its own    search
  never         delete
  up to         99.5 EUR
  deny          when amount > 5
                too much

Audit
  traces        ap-trace-v1 kept 90 days
  stored        remote s3
  query at      https://a.example/t
  evidence      merkle

Extensions
  a2a           {"agent_card_url": "https://a.example/agent.json"}
`
	if got := strings.Replace(c.Text(), c.Digest.String(), "DIGEST", 1); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestUnifiedCardText(t *testing.T) {
	c, err := DecodeCard([]byte(unifiedCard))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  expires       never\n", "  declared      none\n", "  never         none\n", "  traces        kept 0 days\n",
		"  query at      nowhere"} {
		if !strings.Contains(c.Text(), want) {
			t.Errorf("no %q in\n%s", want, c.Text())
		}
	}
}

// Optional parts of a card are shown if present and left out if absent.
func TestOptionalPartsOfACardText(t *testing.T) {
	card := strings.NewReplacer(`"card_id"`, `"signature": `+signatureBlock+`, "card_id"`, `"type": "human"`, `"type": "human", "identifier": "did:web:u.example"`,
		`"priority": 2`, `"priority": 2, "subsumes": ["frugality", "honesty"]`, `"conflicts_with": ["waste"],`, ``,
		noExtensions, `"extensions": {"plumbline": {"keys": [`+key("k1")+`,`+key("k2")+`]}}`).Replace(goodCard)
	c, err := DecodeCard([]byte(card))
	if err != nil {
		t.Fatal(err)
	}
	text := c.Text()
	for _, want := range []string{"  signature     Ed25519 by key k1\n  keys          k1\n                k2\n", "  identifier    did:web:u.example\n",
		"    subsumes    frugality\n                honesty\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "refuses") {
		t.Errorf("refused values in\n%s", text)
	}
}

// A card is foreign text on an operator's terminal, so its text must not contain terminal
// commands.
func TestCardTextQuotesControlCharacters(t *testing.T) {
	const escape = `\u001b[2J\u009b\u202e\n`
	card := strings.NewReplacer(`"ac-1"`, `"ac`+escape+`"`, `"search"`, `"search`+escape+`"`, `too much`, escape, `Spend little`, escape,
		`mailto:u`, escape, `"s3"`, `"`+escape+`"`, `"waste"`, `"`+escape+`"`, `"EUR"`, `"`+escape+`"`, `"deep"`, `"`+escape+`"`).Replace(goodCard)
	c, err := DecodeCard([]byte(card))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range c.Text() {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Fatalf("%q in the text", r)
		}
	}
}
