package api

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema/signature"
)

// secret returns one of the test's keys. Its number is its id.
func secret(n int) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(n)}, ed25519.SeedSize))
}

// publicKeyText returns a public key in the form that cards use.
func publicKeyText(n int) string {
	public := secret(n).Public().(ed25519.PublicKey)
	return fmt.Sprintf(`{"key_id":"k%d","algorithm":"Ed25519","public_key":%q}`, n, base64.StdEncoding.EncodeToString(public))
}

// keyed returns a card that registers keys and is signed by signer; 0 means unsigned.
func keyed(t *testing.T, id string, signer int, keys ...int) string {
	t.Helper()
	var texts []string
	for _, key := range keys {
		texts = append(texts, publicKeyText(key))
	}
	text := card("did:web:a", id)
	if len(keys) > 0 {
		text = strings.TrimSuffix(text, "}") + `,"extensions":{"plumbline":{"keys":[` + strings.Join(texts, ",") + `]}}}`
	}
	if signer == 0 {
		return text
	}
	s, err := signature.Sign([]byte(text), fmt.Sprint("k", signer), secret(signer))
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signature.Attach([]byte(text), s)
	if err != nil {
		t.Fatal(err)
	}
	return string(signed)
}

// withIssuer gives the stage a file with an issuer's key.
func withIssuer(t *testing.T, mode string, issuer int) func(*setup) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "issuers.jsonl")
	if err := os.WriteFile(path, []byte("# ours\n\n"+publicKeyText(issuer)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(cfg *setup) { cfg.CardSignatures, cfg.CardIssuerKeysFile = mode, path }
}

// step is a registration and its expected answer.
type step struct {
	name   string
	signer int
	keys   []int
	code   int
}

const (
	created      = http.StatusCreated
	forbiddenKey = http.StatusForbidden  // card_key
	faulty       = http.StatusBadRequest // a fault at /signature
)

func (r *rig) walk(steps []step) {
	r.t.Helper()
	t := r.t.(*testing.T)
	for i, s := range steps {
		id := fmt.Sprint("card-", i)
		answer := r.putCard(id, keyed(t, id, s.signer, s.keys...))
		if answer.code != s.code {
			t.Errorf("%s: the answer is %d %s, want %d", s.name, answer.code, answer.text, s.code)
			continue
		}
		switch s.code {
		case forbiddenKey:
			if p := answer.problem(t); p.Word != "card_key" || !strings.Contains(p.Message, "sign") {
				t.Errorf("%s: %s", s.name, answer.text)
			}
		case faulty:
			if p := answer.problem(t); len(p.Faults) != 1 || p.Faults[0].Pointer != "/signature" {
				t.Errorf("%s: %s", s.name, answer.text)
			}
		}
	}
}

// TestAgentContinuesWithItsKeys checks that an unsigned fleet works as before, and that an agent that has
// registered keys must continue to use them.
func TestAgentContinuesWithItsKeys(t *testing.T) {
	r := start(t, withIssuer(t, Default().CardSignatures, 9))
	r.walk([]step{
		{"unsigned", 0, nil, created},
		{"unsigned again", 0, nil, created},
		{"signed with no key of its own", 1, []int{2}, faulty},
		{"the first keys, unsigned", 0, []int{1}, created},
		{"unsigned after keys were registered", 0, nil, forbiddenKey},
		{"unsigned, with the same key", 0, []int{1}, forbiddenKey},
		{"its own new key alone", 2, []int{2}, forbiddenKey},
		{"both keys, signed with the new one", 2, []int{1, 2}, forbiddenKey},
		{"an unknown key", 3, []int{1}, faulty},
		{"from the old key to the new one", 1, []int{2}, created},
		{"the old key, no longer valid", 1, []int{1}, forbiddenKey},
		{"the new key", 2, []int{2, 3}, created},
		{"one of several", 3, []int{3}, created},
		{"signed, without keys: the previous ones stay", 3, nil, created},
		{"unsigned", 0, nil, forbiddenKey},
		{"the key is lost, the issuer signs", 9, []int{4}, created},
		{"from then on the new key", 4, []int{4}, created},
		{"the lost key", 3, []int{3}, forbiddenKey},
	})
}

// TestRevocationDoesNotReleaseTheKeys checks that revoking the cards allows nobody to replace the
// keys.
func TestRevocationDoesNotReleaseTheKeys(t *testing.T) {
	r := start(t)
	first := keyed(t, "first", 1, 1)
	r.register(first)
	if answer := r.revoke("first", `{"reason":"r"}`); answer.code != http.StatusCreated {
		t.Fatal(answer.text)
	}
	if answer := r.putCard("thief", keyed(t, "thief", 2, 2)); answer.code != forbiddenKey {
		t.Errorf("the answer is %d %s", answer.code, answer.text)
	}
	if answer := r.putCard("second", keyed(t, "second", 1, 1)); answer.code != created {
		t.Errorf("the answer is %d %s", answer.code, answer.text)
	}
	if answer := r.putCard("first", first); answer.code != http.StatusOK {
		t.Errorf("the first one again, which is known: the answer is %d %s", answer.code, answer.text)
	}
}

func TestSignaturesRequired(t *testing.T) {
	r := start(t, withIssuer(t, signaturesRequired, 9))
	r.walk([]step{
		{"unsigned", 0, nil, forbiddenKey},
		{"unsigned, with a key", 0, []int{1}, forbiddenKey},
		{"with an issuer's key", 9, nil, created},
		{"with its own key", 1, []int{1}, created},
		{"with another of its own", 2, []int{2}, forbiddenKey},
	})
}

func TestSignaturesOff(t *testing.T) {
	r := start(t, withIssuer(t, signaturesOff, 9))
	r.walk([]step{
		{"the first key", 1, []int{1}, created},
		{"unsigned", 0, nil, created},
		{"its own new key alone", 2, []int{2}, created},
		{"the earlier key", 1, nil, faulty}, // the newest card with keys has k2
		{"a wrong key", 3, []int{2}, faulty},
		{"with an issuer's key", 9, nil, created},
	})
}

// TestSignedContentIsWhatCounts checks that a signed card that was changed is refused.
func TestSignedContentIsWhatCounts(t *testing.T) {
	r := start(t)
	good := keyed(t, "1", 1, 1)
	changed := strings.Replace(good, `"search"`, `"search","pay"`, 1)
	if answer := r.putCard("1", changed); answer.code != faulty || !strings.Contains(answer.text, "does not match the content") {
		t.Errorf("the answer is %d %s", answer.code, answer.text)
	}
	spaced := strings.Replace(good, `"agent_id":`, `"agent_id" : `, 1) // the signed form drops the space
	if answer := r.putCard("1", spaced); answer.code != created {
		t.Errorf("the answer is %d %s", answer.code, answer.text)
	}
}

func TestIssuersFileIsChecked(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "it has no key",
		"# nothing\n":               "it has no key",
		"\n{\"key_id\":\"k\"":       ":2: want {key_id, algorithm, public_key}",
		`{"key_id":"k","secret":1}`: "secret",
		strings.Replace(publicKeyText(1), "k1", "", 1):             "key_id is empty",
		strings.Replace(publicKeyText(1), "Ed25519", "RS256", 1):   `algorithm is "RS256"`,
		`{"key_id":"k","algorithm":"Ed25519","public_key":"AAA="}`: "public_key has 2 bytes",
		`{"key_id":"k","algorithm":"Ed25519","public_key":"%"}`:    "public_key",
	} {
		path := filepath.Join(t.TempDir(), "issuers.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if keys, err := readIssuers(path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v, error %v, want it to say %q", text, keys, err, want)
		}
	}
}
