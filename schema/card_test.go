package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gowebpki/jcs"

	"github.com/plumbline/plumbline/schema/published"
)

const goodCard = `{
	"aap_version": "0.1.0", "card_id": "ac-1", "agent_id": "did:web:a.example", "issued_at": "2026-01-01T00:00:00Z",
	"expires_at": "2026-12-31T23:59:59.5+02:00",
	"principal": {"type": "human", "relationship": "advisory", "escalation_contact": "mailto:u@example.com"},
	"values": {"declared": ["honesty", "thrift"], "definitions": {"thrift": {"name": "Thrift", "description": "Spend little", "priority": 2}},
		"conflicts_with": ["waste"], "hierarchy": "weighted"},
	"autonomy_envelope": {
		"bounded_actions": ["search"], "forbidden_actions": ["delete"],
		"escalation_triggers": [{"condition": "amount > 5", "action": "deny", "reason": "too much"}],
		"max_autonomous_value": {"amount": 99.5, "currency": "EUR"}},
	"audit_commitment": {"trace_format": "ap-trace-v1", "retention_days": 90, "queryable": true, "query_endpoint": "https://a.example/t",
		"storage": {"type": "remote", "location": "s3"}, "tamper_evidence": "merkle"},
	"extensions": {"a2a": {"agent_card_url": "https://a.example/agent.json"}}, "x_unknown": [1, {"deep": null}]
}`

const unifiedCard = `{
	"card_version": "unified/2026-04-26", "card_id": "ac-2", "agent_id": "a", "issued_at": "2026-01-01T00:00:00Z", "expires_at": null,
	"autonomy_mode": "observe", "integrity_mode": "enforce",
	"principal": {"type": "unspecified", "relationship": "autonomous"}, "values": {"declared": []},
	"autonomy": {"bounded_actions": ["search"], "max_autonomous_value": null, "forbidden_actions": null},
	"audit": {"retention_days": 0, "queryable": false}
}`

func TestDecodeCardReadsEveryMember(t *testing.T) {
	c, err := DecodeCard([]byte("\n" + goodCard + " "))
	if err != nil {
		t.Fatal(err)
	}
	raw, digest := c.Raw, c.Digest
	c.Raw, c.Digest, c.Policy, c.Extensions = nil, Digest{}, Digest{}, nil
	got := fmt.Sprintf("%+v", *c)
	const want = `{Shape:0.1.0 Version:0.1.0 CardID:ac-1 AgentID:did:web:a.example IssuedAt:2026-01-01 00:00:00 +0000 UTC ` +
		`ExpiresAt:2026-12-31 21:59:59.5 +0000 UTC ` +
		`Principal:{Type:human Identifier: Relationship:advisory EscalationContact:mailto:u@example.com} ` +
		`Values:{Declared:[honesty thrift] Definitions:[{ID:thrift Name:Thrift Description:Spend little Priority:2 HasPriority:true Subsumes:[]}] ` +
		`ConflictsWith:[waste] Hierarchy:weighted} ` +
		`Autonomy:{BoundedActions:[search] EscalationTriggers:[{Condition:amount > 5 Action:deny Reason:too much}] ` +
		`MaxAutonomousValue:{Present:true Amount:99.5 Digits:99.5 Currency:EUR} ForbiddenActions:[delete]} ` +
		`Audit:{TraceFormat:ap-trace-v1 RetentionDays:90 StorageType:remote StorageLocation:s3 Queryable:true ` +
		`QueryEndpoint:https://a.example/t TamperEvidence:merkle} Extensions:[] Keys:[] Signature:<nil> Raw:[] Digest:` +
		`0000000000000000000000000000000000000000000000000000000000000000 Policy:0000000000000000000000000000000000000000000000000000000000000000}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if string(raw) != goodCard || digest.IsZero() {
		t.Error("the bytes registered are not kept")
	}
}

func TestDecodeCardReadsTheUnifiedShape(t *testing.T) {
	c, err := DecodeCard([]byte(unifiedCard))
	if err != nil {
		t.Fatal(err)
	}
	if c.Shape != ShapeUnified || c.Version != "unified/2026-04-26" || len(c.Autonomy.BoundedActions) != 1 || !c.ExpiresAt.IsZero() {
		t.Errorf("got %+v", c)
	}
}

// The version is that of the card's own shape if the card has it.
func TestVersionOfACard(t *testing.T) {
	for _, c := range []struct{ card, old, new, version string }{
		{goodCard, `"aap_version": "0.1.0"`, `"aap_version": "0.1.0", "card_version": "unified/2026-04-26"`, "0.1.0"},
		{unifiedCard, `"card_version": "unified/2026-04-26"`, `"aap_version": "0.1.0"`, "0.1.0"},
		{unifiedCard, `"card_version"`, `"aap_version": "0.1.0", "card_version"`, "unified/2026-04-26"},
	} {
		if card, err := DecodeCard([]byte(strings.Replace(c.card, c.old, c.new, 1))); err != nil || card.Version != c.version {
			t.Errorf("%s: version %q (%v), want %q", c.new, card.Version, err, c.version)
		}
	}
}

// The specification's shape requires triggers (AAP section 4.5); the other shape does not.
func TestTriggersThatAreNull(t *testing.T) {
	unified := strings.Replace(unifiedCard, `"bounded_actions"`, `"escalation_triggers": null, "bounded_actions"`, 1)
	if faults := faultsOf(t, unified); faults != nil {
		t.Errorf("2.x: %q", faults)
	}
	faults := faultsOf(t, with(t, `[{"condition": "amount > 5", "action": "deny", "reason": "too much"}]`, `null`))
	if !slices.Equal(faults, []string{"/autonomy_envelope/escalation_triggers: want an array of triggers, found null"}) {
		t.Errorf("0.1.0: %q", faults)
	}
}

// A card and a message keep their bytes when the caller overwrites its buffer.
func TestDecodedBytesAreCopies(t *testing.T) {
	raw := []byte(goodCard)
	card, err := DecodeCard(raw)
	if err != nil {
		t.Fatal(err)
	}
	clear(raw)
	if string(card.Raw) != goodCard || card.CardID != "ac-1" {
		t.Errorf("the card is %s now, its id %q", card.Raw, card.CardID)
	}
	text := handshakeMessages[MessageCardRequest]
	raw = []byte(text)
	message, err := DecodeHandshake(raw)
	if err != nil {
		t.Fatal(err)
	}
	clear(raw)
	if object, _ := message.Signed(); string(object) != text || message.ID() != "r1" {
		t.Errorf("the message is %s now, its id %q", object, message.ID())
	}
}

func TestCardDigestIsThatOfTheCanonicalForm(t *testing.T) {
	var tree any
	if err := json.Unmarshal([]byte(goodCard), &tree); err != nil {
		t.Fatal(err)
	}
	reordered, err := json.MarshalIndent(tree, "", "\t\t")
	if err != nil {
		t.Fatal(err)
	}
	a, errA := DecodeCard([]byte(goodCard))
	b, errB := DecodeCard(reordered)
	if errA != nil || errB != nil || a.Digest != b.Digest {
		t.Errorf("the same card in another order has another digest: %v %v", errA, errB)
	}
	other, err := DecodeCard([]byte(strings.Replace(goodCard, "99.5", "99.6", 1)))
	if err != nil || other.Digest == a.Digest {
		t.Errorf("another card has the same digest (%v)", err)
	}
}

// Cards have the same policy if their blocks of values and autonomy are the same, byte for byte.
func TestPolicyIsThatOfValuesAndAutonomy(t *testing.T) {
	policy := func(text string) Digest {
		t.Helper()
		card, err := DecodeCard([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return card.Policy
	}
	own := policy(goodCard)
	for old, changed := range map[string]string{
		`"ac-1"`: `"ac-2"`, `"did:web:a.example"`: `"b"`, `2026-01-01T00:00:00Z`: `2026-02-01T00:00:00Z`, `mailto:u@example.com`: `u`,
	} {
		if policy(strings.Replace(goodCard, old, changed, 1)) != own {
			t.Errorf("with %s the policy is another one", changed)
		}
	}
	for old, changed := range map[string]string{
		`"honesty"`: `"fairness"`, `"waste"`: `"haste"`, `"search"`: `"find"`, `amount > 5`: `amount > 6`, `99.5`: `99.50`, `"delete"`: `"remove"`,
	} {
		other := strings.Replace(goodCard, old, changed, 1)
		if other == goodCard || policy(other) == own {
			t.Errorf("with %s the policy is the same", changed)
		}
	}
	if policy(unifiedCard) == own {
		t.Error("a card of the other shape has the same policy")
	}
}

func TestDecodeCardRefuses(t *testing.T) {
	for _, c := range []struct{ name, card, old, new, want string }{
		{"no JSON", goodCard, `{
	"aap`, `{"aap" "aap`, "invalid_json: /aap: "},
		{"duplicate name", goodCard, `"card_id"`, `"card_id": "x", "card_id"`, "invalid_json: /card_id: "},
		{"trailing text", goodCard, `null}]
}`, `null}]
} {}`, "unexpected text after the record"},
		{"wrong case", goodCard, `"card_id"`, `"Card_ID"`, "/card_id: is missing (required)"},
		{"empty id", goodCard, `"ac-1"`, `""`, "/card_id: must not be empty"},
		{"null id", goodCard, `"ac-1"`, `null`, "/card_id: want a string, found null"},
		{"no version", goodCard, `"aap_version": "0.1.0",`, ``, "/aap_version: is missing (required)"},
		{"no zone", goodCard, `01-01T00:00:00Z`, `01-01T00:00:00`, "/issued_at: "},
		{"expiry before issue", goodCard, `2026-12-31T`, `2025-12-31T`, "/expires_at: is not after issued_at"},
		{"year 9999", goodCard, `2026-12-31T`, `9999-12-31T`, "/expires_at: 9999-12-31T21:59:59Z is outside 1970..2105"},
		{"principal type", goodCard, `"human"`, `"Human"`, `/principal/type: "Human" is none of human, organization, agent, unspecified`},
		{"relationship", goodCard, `"advisory"`, `"boss"`, "/principal/relationship: "},
		{"no principal type", goodCard, `"type": "human", `, ``, "/principal/type: is missing (required)"},
		{"undefined value", goodCard, `"thrift": {`, `"other": {`, `/values/declared/1: "thrift" is no standard value and has no definition`},
		{"value not a string", goodCard, `["honesty", "thrift"]`, `["honesty", {"id": "x"}]`, "/values/declared/1: want a string, found an object"},
		{"definition text", goodCard, `"description": "Spend little", `, ``, "/values/definitions/thrift/description: is missing (required)"},
		{"hierarchy", goodCard, `"weighted"`, `"random"`, "/values/hierarchy: "},
		{"no triggers", goodCard, `"escalation_triggers"`, `"triggers"`, "/autonomy_envelope/escalation_triggers: is missing (required)"},
		{"trigger action", goodCard, `"deny"`, `"block"`, "/autonomy_envelope/escalation_triggers/0/action: "},
		{"trigger reason", goodCard, `, "reason": "too much"`, ``, "/autonomy_envelope/escalation_triggers/0/reason: is missing (required)"},
		{"both allowed and not", goodCard, `["delete"]`, `["delete", "search"]`, `/autonomy_envelope/forbidden_actions/1: "search" is one of bounded_actions too`},
		{"amount", goodCard, `99.5`, `"99.5"`, "/autonomy_envelope/max_autonomous_value/amount: want a number, found a string"},
		{"no audit", goodCard, `"audit_commitment"`, `"commitment"`, "/audit_commitment: is missing (required)"},
		{"trace format", goodCard, `"trace_format": "ap-trace-v1", `, ``, "/audit_commitment/trace_format: is missing (required)"},
		{"retention negative", goodCard, `90`, `-1`, "/audit_commitment/retention_days: want an integer of at least 0"},
		{"retention fraction", goodCard, `90`, `1.5`, "/audit_commitment/retention_days: want an integer of at least 0"},
		{"retention long", goodCard, `90`, `40000`, "/audit_commitment/retention_days: 40000 days: a card may commit to at most 36500"},
		{"endpoint", goodCard, `"query_endpoint"`, `"endpoint"`, "/audit_commitment/query_endpoint: is required of a card"},
		{"storage", goodCard, `"remote"`, `"tape"`, "/audit_commitment/storage/type: "},
		{"tamper evidence", goodCard, `"merkle"`, `"none"`, "/audit_commitment/tamper_evidence: "},
		{"huge number", goodCard, `[1, {`, `[1e999, {`, "/x_unknown: "},
		{"too deep", goodCard, `"deep": null`, `"deep": ` + strings.Repeat("[", 70) + strings.Repeat("]", 70), "/x_unknown: nested deeper"},
		{"both blocks", unifiedCard, `"audit": {`, `"audit_commitment": {"trace_format": "t", "retention_days": 1, "queryable": false}, "audit": {`, "/audit: is the same block"},
		{"unified mode", unifiedCard, `"enforce"`, `"strict"`, "/integrity_mode: "},
		{"unified principal", unifiedCard, `"unspecified"`, `"human"`, "/principal/identifier: is required"},
		{"unified autonomy", unifiedCard, `"autonomy"`, `"autonomie"`, "/autonomy: is missing (required)"},
		{"too large", goodCard, `mailto:u`, strings.Repeat("m", MaxCardBytes), "too_large: "},
	} {
		if !strings.Contains(c.card, c.old) {
			t.Fatalf("%s: the card does not contain %s", c.name, c.old)
		}
		_, err := DecodeCard([]byte(strings.Replace(c.card, c.old, c.new, 1)))
		var refusal *Refusal
		if !errors.As(err, &refusal) || !strings.Contains(err.Error(), c.want) || len(refusal.Faults) != 1 {
			t.Errorf("%s: got %v\nwant the one fault %s", c.name, err, c.want)
		}
	}
}

func TestDecodeCardReportsAllFaults(t *testing.T) {
	_, err := DecodeCard([]byte(`{"card_id": 5, "issued_at": "today", "principal": [], "values": {"declared": ["x"]}, "autonomy": {}}`))
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("got %v", err)
	}
	var got []string
	for _, f := range refusal.Faults {
		got = append(got, f.Pointer)
	}
	slices.Sort(got)
	want := []string{"/agent_id", "/audit", "/autonomy/bounded_actions", "/card_id", "/issued_at", "/principal", "/principal/identifier", "/values/declared/0"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestCardHasBoundedTriggers(t *testing.T) {
	trigger := `{"condition": "a", "action": "log", "reason": ""}`
	many := strings.Repeat(trigger+",", MaxTriggers) + trigger
	card := strings.Replace(goodCard, `{"condition": "amount > 5", "action": "deny", "reason": "too much"}`, many, 1)
	if _, err := DecodeCard([]byte(card)); err == nil || !strings.Contains(err.Error(), "501 triggers, a card may have 500") {
		t.Errorf("got %v", err)
	}
}

func TestPublishedCardsRegister(t *testing.T) {
	cards := append(published.Lines(t, "corpus/cards.jsonl"), published.Read(t, "conformance/aap/spec_example_card.json"))
	if len(cards) != 11 {
		t.Errorf("%d cards, want the example and the corpus's ten", len(cards))
	}
	for _, card := range cards {
		if _, err := DecodeCard(card); err != nil {
			t.Errorf("%.80s: %v", card, err)
		}
	}
}

func TestPublishedVectorsCardsRegister(t *testing.T) {
	files, err := filepath.Glob(published.Path(t, "conformance/aap") + "/*/*_*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var vector struct {
			Card json.RawMessage `json:"card"`
		}
		if err := json.Unmarshal(raw, &vector); err != nil || vector.Card == nil {
			t.Fatalf("%s: no card (%v)", file, err)
		}
		if c, err := DecodeCard(vector.Card); err != nil || c.Shape != ShapeUnified {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func FuzzDecodeCard(f *testing.F) {
	f.Add([]byte(goodCard))
	f.Add([]byte(unifiedCard))
	f.Add([]byte(registering(f, key("k1"), key(""))))
	f.Add([]byte(`{"signature": {"algorithm": "Ed25519", "value": "AA==", "key_id": "k"}, "extensions": {"plumbline": {"keys": [{}]}, "": 1}}`))
	f.Add([]byte(`{"autonomy": {"escalation_triggers": [[]]}, "values": {"definitions": {"x": 1}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := DecodeCard(raw)
		if err != nil {
			return
		}
		again, err := DecodeCard(c.Raw)
		if err != nil || again.Digest != c.Digest {
			t.Fatalf("a card decodes differently the second time: %v", err)
		}
		if canonical, err := jcs.Transform(c.Raw); err != nil || DigestOf(canonical) != c.Digest {
			t.Fatalf("another implementation of RFC 8785 gives the form %s, error %v", canonical, err)
		}
		if Lint(c); !utf8.ValidString(c.Text()) {
			t.Fatal("the text of a card is not UTF-8")
		}
	})
}
