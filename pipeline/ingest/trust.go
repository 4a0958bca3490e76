package ingest

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/schema"
)

// The requirements on the signatures of new cards (AAP section 9.2). An existing signature is
// verified in every mode.
const (
	signaturesOff        = "off"        // nothing
	signaturesContinuity = "continuity" // an agent with registered keys must continue to use them
	signaturesRequired   = "required"   // the same, and every card must be signed
)

// trust examines new cards. A card may be signed with one of its own keys, with a key that is
// trusted for its agent's next card (cards.Registry.Keys), or with an issuer's key. Once an agent
// has registered keys, the card's own keys are not enough: otherwise a thief of the agent's token
// could replace the keys too.
type trust struct {
	mode    string
	issuers []schema.Key // the operator's own keys, trusted for every agent
}

// examine compiles a card. former are the keys that its agent has registered before. Errors: a
// *schema.Refusal if the card or its signature is invalid, a *problem if the signature is missing
// or made with the wrong key.
func (t *trust) examine(raw []byte, former []schema.Key) (*aap.Compiled, error) {
	compiled, err := aap.Register(raw, slices.Concat(t.issuers, former)...)
	if err != nil {
		return nil, err
	}
	unsigned := compiled.SignedBy == nil
	switch {
	case t.mode == signaturesOff:
	case len(former) > 0 && (unsigned || compiled.SelfSigned):
		return nil, problemf(http.StatusForbidden, "card_key",
			"agent %q has registered keys: sign its new card with one of them (%s); where they are lost, "+
				"the operator signs it with a key of card_issuer_keys_file", compiled.Card.AgentID, keyIDs(former))
	case t.mode == signaturesRequired && unsigned:
		return nil, problemf(http.StatusForbidden, "card_key",
			"this service registers signed cards only: sign the card with a key that it lists in extensions.plumbline.keys")
	}
	return compiled, nil
}

// maxNamedKeys is how many keys of an agent an answer lists.
const maxNamedKeys = 4

func keyIDs(keys []schema.Key) string {
	var names []byte
	for i, key := range keys {
		if i > 0 {
			names = append(names, ", "...)
		}
		if i == maxNamedKeys {
			return string(names) + "…"
		}
		names = fmt.Appendf(names, "%q", key.KeyID)
	}
	return string(names)
}

// issuerKey is a line of the issuers' file: a key in the form that cards use.
type issuerKey struct {
	KeyID     string `json:"key_id"`
	Algorithm string `json:"algorithm"`
	PublicKey []byte `json:"public_key"` // base64
}

// readIssuers reads a file of public keys, one JSON object a line. Empty lines and lines that
// begin with # are skipped. An empty path means no keys.
func readIssuers(path string) ([]schema.Key, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("card_issuer_keys_file: %w", err)
	}
	var keys []schema.Key
	lines := bufio.NewScanner(bytes.NewReader(text))
	for number := 1; lines.Scan(); number++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		key, err := parseIssuer(line)
		if err != nil {
			return nil, fmt.Errorf("card_issuer_keys_file %s:%d: %w", path, number, err)
		}
		keys = append(keys, key)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("card_issuer_keys_file %s: %w", path, err)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("card_issuer_keys_file %s: it holds no key", path)
	}
	return keys, nil
}

func parseIssuer(line []byte) (schema.Key, error) {
	var given issuerKey
	if err := json.Unmarshal(line, &given, json.RejectUnknownMembers(true)); err != nil {
		return schema.Key{}, fmt.Errorf("want {key_id, algorithm, public_key}: %w", err)
	}
	switch {
	case given.KeyID == "":
		return schema.Key{}, errors.New("key_id is empty")
	case given.Algorithm != schema.SignatureEd25519:
		return schema.Key{}, fmt.Errorf("algorithm is %q, want %s", given.Algorithm, schema.SignatureEd25519)
	case len(given.PublicKey) != ed25519.PublicKeySize:
		return schema.Key{}, fmt.Errorf("public_key has %d bytes, want %d in base64", len(given.PublicKey), ed25519.PublicKeySize)
	}
	return schema.Key{KeyID: given.KeyID, PublicKey: given.PublicKey}, nil
}
