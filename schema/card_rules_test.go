package schema

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// with returns goodCard with pieces replaced.
func with(t testing.TB, pieces ...string) string {
	t.Helper()
	card := goodCard
	for i := 0; i < len(pieces); i += 2 {
		if !strings.Contains(card, pieces[i]) {
			t.Fatalf("the card does not contain %s", pieces[i])
		}
		card = strings.Replace(card, pieces[i], pieces[i+1], 1)
	}
	return card
}

// faultsOf returns the faults of a card as "pointer: message".
func faultsOf(t testing.TB, card string) []string {
	t.Helper()
	_, err := DecodeCard([]byte(card))
	if err == nil {
		return nil
	}
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("not a refusal: %v", err)
	}
	var faults []string
	for _, f := range refusal.Faults {
		faults = append(faults, f.Pointer+": "+f.Message)
	}
	return faults
}

const noExtensions = `"extensions": {"a2a": {"agent_card_url": "https://a.example/agent.json"}}`

var publicKey = base64.StdEncoding.EncodeToString(make([]byte, 32))

// registering returns goodCard with keys, each a JSON text.
func registering(t testing.TB, keys ...string) string {
	return with(t, noExtensions, `"extensions": {"plumbline": {"keys": [`+strings.Join(keys, ",")+`], "later": [1]}}`)
}

func key(id string) string {
	return fmt.Sprintf(`{"key_id": %q, "algorithm": "Ed25519", "public_key": %q, "note": {}}`, id, publicKey)
}

func TestCardRegistersKeys(t *testing.T) {
	c, err := DecodeCard([]byte(registering(t, key("k1"), key("k2"))))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Keys) != 2 || c.Keys[0].KeyID != "k1" || c.Keys[1].KeyID != "k2" || len(c.Keys[1].PublicKey) != 32 {
		t.Errorf("got %+v", c.Keys)
	}
	if raw, ok := c.Extensions.Get("plumbline"); !ok || raw[0] != '{' {
		t.Errorf("the extension itself is %s", raw)
	}
	for _, block := range []string{`{}`, `{"keys": null}`, `{"keys": []}`, `{"Keys": 5}`, `null`} {
		if c, err := DecodeCard([]byte(with(t, noExtensions, `"extensions": {"plumbline": `+block+`}`))); err != nil || len(c.Keys) != 0 {
			t.Errorf("%s: %+v (%v)", block, c, err)
		}
	}
}

func TestCardRefusesKeys(t *testing.T) {
	const at = "/extensions/plumbline/keys"
	for name, c := range map[string]struct{ card, want string }{
		"no list":        {with(t, noExtensions, `"extensions": {"plumbline": {"keys": {}}}`), at + ": want an array of keys, found an object"},
		"no object":      {registering(t, `"k1"`), at + "/0: want an object, found a string"},
		"no namespace":   {with(t, noExtensions, `"extensions": {"plumbline": []}`), "/extensions/plumbline: want an object"},
		"id twice":       {registering(t, key("k1"), key("k2"), key("k1")), at + `/2/key_id: "k1" is the key_id of an earlier key too`},
		"empty id":       {registering(t, key("")), at + "/0/key_id: must not be empty"},
		"no id":          {registering(t, strings.Replace(key("k1"), "key_id", "kid", 1)), at + "/0/key_id: is missing (required)"},
		"algorithm":      {registering(t, strings.Replace(key("k1"), "Ed25519", "ed25519", 1)), at + `/0/algorithm: "ed25519" is none of Ed25519`},
		"no algorithm":   {registering(t, strings.Replace(key("k1"), "algorithm", "alg", 1)), at + "/0/algorithm: is missing (required)"},
		"short key":      {registering(t, strings.Replace(key("k1"), publicKey, publicKey[:40], 1)), at + "/0/public_key: want 32 bytes in padded base64"},
		"unpadded key":   {registering(t, strings.Replace(key("k1"), publicKey, publicKey[:43], 1)), at + "/0/public_key: want 32 bytes in padded base64"},
		"stray bits":     {registering(t, strings.Replace(key("k1"), publicKey, publicKey[:42]+"B=", 1)), at + "/0/public_key: want 32 bytes in padded base64"},
		"key no text":    {registering(t, strings.Replace(key("k1"), `"`+publicKey+`"`, "1", 1)), at + "/0/public_key: want a string, found a number"},
		"too many":       {registering(t, manyKeys(MaxKeys+1)...), at + ": 65 keys, a card may have 64"},
		"hexadecimal":    {registering(t, strings.Replace(key("k1"), publicKey, strings.Repeat("00", 32), 1)), at + "/0/public_key: want 32 bytes in padded base64"},
		"null for a key": {registering(t, "null"), at + "/0: want an object, found null"},
	} {
		if faults := faultsOf(t, c.card); len(faults) != 1 || !strings.HasPrefix(faults[0], c.want) {
			t.Errorf("%s: got %q, want the one fault %q", name, faults, c.want)
		}
	}
}

func manyKeys(n int) []string {
	var keys []string
	for i := range n {
		keys = append(keys, key(fmt.Sprint("k", i)))
	}
	return keys
}

func TestExtensionsAreNamespaces(t *testing.T) {
	for block, want := range map[string]string{
		`{}`:   "",
		`null`: "",
		`{"a2a": {"any": [1]}, "x.example/1": {}, "mcp": {"tool_alignment_requirements": ["consent_logging"]}}`: "",
		`{"mcp": null}`:             "",
		`{"mcp": true}`:             "/extensions/mcp: want an object: each extension is the namespace of a protocol, found a boolean",
		`{"a": {}, "mcp": ["x"]}`:   "/extensions/mcp: want an object: each extension is the namespace of a protocol, found an array",
		`{"": {}}`:                  "/extensions/: the name of a protocol must not be empty",
		`["mcp"]`:                   "/extensions: want an object, found an array",
		`{"mcp": {"big": [1e999]}}`: "/extensions/mcp: a number is beyond the range",
	} {
		faults := faultsOf(t, with(t, noExtensions, `"extensions": `+block))
		if want == "" && len(faults) != 0 || want != "" && (len(faults) != 1 || !strings.HasPrefix(faults[0], want)) {
			t.Errorf("%s: got %q, want %q", block, faults, want)
		}
	}
}

func TestCardReadsItsSignature(t *testing.T) {
	value := base64.StdEncoding.EncodeToString(make([]byte, 64))
	block := `{"algorithm": "Ed25519", "value": "` + value + `", "key_id": "k1"}`
	signed := func(block string) string { return with(t, `"card_id"`, `"signature": `+block+`, "card_id"`) }
	c, err := DecodeCard([]byte(signed(block)))
	if err != nil || c.Signature == nil || *c.Signature != (Signature{Algorithm: "Ed25519", Value: value, KeyID: "k1"}) {
		t.Fatalf("got %+v (%v)", c, err)
	}
	if c, err := DecodeCard([]byte(signed("null"))); err != nil || c.Signature != nil {
		t.Errorf("null: %v", err)
	}
	for _, c := range []struct{ block, want string }{
		{`"text"`, "/signature: want an object, found a string"},
		{strings.Replace(block, "Ed25519", "RS256", 1), `/signature/algorithm: "RS256" is none of Ed25519`},
		{strings.Replace(block, `"k1"`, `""`, 1), "/signature/key_id: must not be empty"},
		{strings.Replace(block, "key_id", "kid", 1), "/signature/key_id: is missing (required)"},
		{strings.Replace(block, value, value[4:], 1), "/signature/value: want 64 bytes in padded base64"},
	} {
		if faults := faultsOf(t, signed(c.block)); len(faults) != 1 || !strings.HasPrefix(faults[0], c.want) {
			t.Errorf("%s: got %q, want %q", c.block, faults, c.want)
		}
	}
}

func TestCardReadsSubsumption(t *testing.T) {
	priority := `"priority": 2`
	c, err := DecodeCard([]byte(with(t, priority, `"priority": 2, "subsumes": ["frugality", "honesty"]`)))
	if err != nil || !slices.Equal(c.Values.Definitions[0].Subsumes, []string{"frugality", "honesty"}) {
		t.Errorf("got %+v (%v)", c, err)
	}
	for text, want := range map[string]string{
		`"all"`:      "/values/definitions/thrift/subsumes: want an array of strings, found a string",
		`[1]`:        "/values/definitions/thrift/subsumes/0: want a string, found a number",
		`["thrift"]`: `/values/definitions/thrift/subsumes: "thrift" cannot subsume itself`,
	} {
		if faults := faultsOf(t, with(t, priority, `"priority": 2, "subsumes": `+text)); !slices.Equal(faults, []string{want}) {
			t.Errorf("%s: got %q, want %q", text, faults, want)
		}
	}
}

func TestBoundedAndForbiddenDoNotOverlap(t *testing.T) {
	for _, c := range []struct {
		bounded, forbidden string
		entries            bool // they contradict each other
	}{
		{`"search"`, `"delete"`, false},
		{`"search"`, `"search"`, true},
		{`"search: the web"`, `"search"`, true},
		{`"search"`, `"search: the web"`, true},
		{`"search: the web"`, `"search: the archive"`, true},
		{`"search:"`, `"search"`, true},
		{`" search "`, `"search"`, true},
		{`"search"`, `" search "`, true},
		{`"search"`, `"search : the web"`, true},
		{`": odd"`, `": odd"`, true},
		{`"fs:write"`, `"fs:write"`, true},
		{`" "`, `" "`, false}, // white space names no action
		{`" "`, `"search"`, false},
		{`"search, "`, `" "`, false},
		{`"search"`, `"Search"`, false},
		{`"fs:read"`, `"fs:write"`, false},
		{`"fs:read"`, `"fs"`, true},
		{`"fs"`, `"fs:write"`, true},
		{`"fs: files"`, `"fs:write"`, true},
		{`"search, delete"`, `"delete"`, true},
		{`"search,delete: both"`, `"delete: anything"`, true},
		{`"search: finds, deletes"`, `"deletes"`, false},
		{`"search", "delete"`, `"search, delete"`, false},
		{`": odd"`, `"odd"`, false},
	} {
		faults := faultsOf(t, with(t, `["search"]`, "["+c.bounded+"]", `["delete"]`, "["+c.forbidden+"]"))
		want := "/autonomy_envelope/forbidden_actions/0: "
		if c.entries != (len(faults) == 1 && strings.HasPrefix(faults[0], want)) || !c.entries && len(faults) > 0 {
			t.Errorf("%s against %s: got %q", c.bounded, c.forbidden, faults)
		}
	}
	own := with(t, `["search"]`, `["search, delete", "search", "search, book"]`, `["delete"]`, `["search"]`)
	if faults := faultsOf(t, own); !slices.Equal(faults, []string{`/autonomy_envelope/forbidden_actions/0: "search" is one of bounded_actions too`}) {
		t.Errorf("an entry with a unique name: got %q", faults)
	}
	unified := strings.Replace(unifiedCard, `"forbidden_actions": null`, `"forbidden_actions": ["x", "search"]`, 1)
	if faults := faultsOf(t, unified); !slices.Equal(faults, []string{`/autonomy/forbidden_actions/1: "search" is one of bounded_actions too`}) {
		t.Errorf("2.x: got %q", faults)
	}
}

// The rules hold in both shapes, and all faults are reported at once.
func TestRulesBetweenMembers(t *testing.T) {
	broken := `"declared": ["thrift", "candour"], "conflicts_with": ["waste"]`
	for shape, c := range map[string]struct{ card, autonomy, audit string }{
		"0.1.0": {with(t, `"declared": ["honesty", "thrift"]`, `"declared": ["honesty", "thrift", "candour"]`, `["delete"]`, `["search"]`,
			`, "query_endpoint": "https://a.example/t"`, ``, "2026-12-31", "2024-12-31"), "/autonomy_envelope", "/audit_commitment"},
		"2.x": {strings.NewReplacer(`"declared": []`, broken, `"forbidden_actions": null`, `"forbidden_actions": ["search"]`,
			`"queryable": false`, `"queryable": true, "query_endpoint": ""`, `"expires_at": null`, `"expires_at": "2026-01-01T00:00:00Z"`).Replace(unifiedCard),
			"/autonomy", "/audit"},
	} {
		var pointers []string
		for _, fault := range faultsOf(t, c.card) {
			pointer, _, _ := strings.Cut(fault, ": ")
			pointers = append(pointers, pointer)
		}
		for _, want := range []string{"/expires_at", c.audit + "/query_endpoint", "/values/declared/", c.autonomy + "/forbidden_actions/0"} {
			if !slices.ContainsFunc(pointers, func(p string) bool { return strings.HasPrefix(p, want) }) {
				t.Errorf("%s: no fault at %s in %q", shape, want, pointers)
			}
		}
	}
}

// A card of the specification's shape may break rules that only the 2.x SDK has.
func TestSpecificationCardNeedsNoPrincipalIdentifier(t *testing.T) {
	if faults := faultsOf(t, goodCard); faults != nil {
		t.Errorf("got %q", faults)
	}
	named := strings.Replace(unifiedCard, `"type": "unspecified"`, `"type": "human"`, 1)
	if faults := faultsOf(t, named); len(faults) != 1 || !strings.HasPrefix(faults[0], "/principal/identifier: ") {
		t.Errorf("2.x: got %q", faults)
	}
}
