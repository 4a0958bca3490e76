package api

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/schema"
)

// The requirements on the signatures of new cards (AAP section 9.2). An existing signature is
// verified in every mode.
const (
	signaturesOff        = "off"        // nothing
	signaturesContinuity = "continuity" // an agent with registered keys must continue to use them
	signaturesRequired   = "required"   // the same, and every card must be signed
)

// examine compiles a new card. former are the keys that its agent has registered before. The card
// may be signed with one of its own keys, with a key that is trusted for its agent's next card
// (cards.Registry.Keys), or with an issuer's key: the operator's own, trusted for every agent. Once
// an agent has registered keys, the card's own keys are not enough: otherwise a thief of the agent's
// token could replace the keys too.
//
// Errors: a *schema.Refusal if the card or its signature is invalid, a *problem.Problem if the
// signature is missing or made with the wrong key.
func (a *API) examine(raw []byte, former []schema.Key) (*aap.Compiled, error) {
	compiled, err := aap.Register(raw, slices.Concat(a.Files.issuers, former)...)
	if err != nil {
		return nil, err
	}
	mode, unsigned := a.Config.CardSignatures, compiled.SignedBy == nil
	switch {
	case mode == signaturesOff:
	case len(former) > 0 && (unsigned || compiled.SelfSigned):
		return nil, problem.New(http.StatusForbidden, "card_key",
			"agent %q has registered keys: sign its new card with one of them (%s); if they are lost, "+
				"the operator can sign it with a key of card_issuer_keys_file", compiled.Card.AgentID, keyIDs(former))
	case mode == signaturesRequired && unsigned:
		return nil, problem.New(http.StatusForbidden, "card_key",
			"this service registers signed cards only: sign the card with one of the keys in its extensions.plumbline.keys")
	}
	return compiled, nil
}

// keyIDs lists the ids of the first four keys.
func keyIDs(keys []schema.Key) string {
	var names []string
	for _, key := range keys[:min(4, len(keys))] {
		names = append(names, strconv.Quote(key.KeyID))
	}
	if len(keys) > 4 {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
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
		return nil, fmt.Errorf("card_issuer_keys_file %s: it has no key", path)
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
