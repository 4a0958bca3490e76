// Package a2a embeds Alignment Cards in A2A agent cards (AAP sections 3.3 and 4.8). The agent
// card has a top-level member "alignment" with one or both of
//
//	alignment_card      the card itself, byte for byte
//	alignment_card_url  the URL that serves the current card
//
// The Alignment Card may name the agent card in extensions.a2a.agent_card_url; Plumbline does not
// read that member.
//
// The package knows nothing else of A2A and changes no other byte of an agent card. A signed
// agent card must be signed again after its block is written.
//
// Invariant: the card that is read is the card that was embedded, so its signature and digest
// do not change.
package a2a

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/plumbline/plumbline/schema"
)

// The names of the block and of its members.
const (
	Block         = "alignment"
	memberCard    = "alignment_card"
	memberCardURL = "alignment_card_url"
)

// ErrNoBlock is the error of an agent card without an alignment block.
var ErrNoBlock = errors.New("the agent card has no alignment block")

// Alignment is the content of the block. One of the two may be missing.
type Alignment struct {
	Card *schema.Card // decoded and validated; its signature is not checked
	URL  string
}

// Embed returns the agent card with an Alignment Card in its block; it replaces a card that is
// already there. The rest of the block stays. The error is a *schema.Refusal where card is not
// an Alignment Card.
func Embed(agentCard, card []byte) ([]byte, error) {
	decoded, err := schema.DecodeCard(card)
	if err != nil {
		return nil, fmt.Errorf("embed a card: %w", err)
	}
	return put(agentCard, memberCard, decoded.Raw)
}

// Link returns the agent card with the absolute URL of an Alignment Card in its block.
func Link(agentCard []byte, cardURL string) ([]byte, error) {
	if err := checkURL(cardURL); err != nil {
		return nil, err
	}
	quoted, err := json.Marshal(cardURL)
	if err != nil {
		return nil, fmt.Errorf("quote a URL: %w", err)
	}
	return put(agentCard, memberCardURL, quoted)
}

// Read returns the content of an agent card's alignment block. The error is ErrNoBlock where
// there is no block, and a *schema.Refusal where the card in it is not an Alignment Card.
func Read(agentCard []byte) (a Alignment, err error) {
	block, err := read(agentCard)
	if err != nil {
		return a, err
	}
	if block == nil {
		return a, ErrNoBlock
	}
	members, err := schema.DecodeMembers(block)
	if err != nil {
		return a, fmt.Errorf("read the alignment block: %w", err)
	}
	if raw, ok := members.Get(memberCard); ok && string(raw) != "null" {
		if a.Card, err = schema.DecodeCard(raw); err != nil {
			return Alignment{}, fmt.Errorf("the card of the alignment block: %w", err)
		}
	}
	if quoted, ok := members.Get(memberCardURL); ok && string(quoted) != "null" {
		if err := json.Unmarshal(quoted, &a.URL); err != nil {
			return Alignment{}, fmt.Errorf("%s of the alignment block: %w", memberCardURL, err)
		}
		if err := checkURL(a.URL); err != nil {
			return Alignment{}, err
		}
	}
	if a.Card == nil && a.URL == "" {
		return a, fmt.Errorf("the alignment block has neither %s nor %s", memberCard, memberCardURL)
	}
	return a, nil
}

// read returns the alignment block of an agent card, nil where there is none.
func read(agentCard []byte) (block []byte, err error) {
	_, block, err = schema.CutMember(agentCard, Block)
	if err != nil {
		return nil, fmt.Errorf("read an agent card: %w", err)
	}
	if string(block) == "null" {
		return nil, nil
	}
	return block, nil
}

// Signed reports whether an agent card is signed: writing a block into a signed card breaks its
// signatures. The error says why the text is not an agent card.
func Signed(agentCard []byte) (bool, error) {
	_, member, err := schema.CutMember(agentCard, "signatures")
	var signatures []json.RawMessage
	if err == nil && member != nil {
		err = json.Unmarshal(member, &signatures)
	}
	if err != nil {
		return false, fmt.Errorf("is not an A2A agent card: %w", err)
	}
	return len(signatures) > 0, nil
}

func put(agentCard []byte, name string, value []byte) ([]byte, error) {
	block, err := read(agentCard)
	if err != nil {
		return nil, err
	}
	if block == nil {
		block = []byte("{}")
	}
	if block, err = schema.PutMember(block, name, value); err != nil {
		return nil, fmt.Errorf("read the alignment block: %w", err)
	}
	return schema.PutMember(agentCard, Block, block)
}

func checkURL(text string) error {
	if u, err := url.Parse(text); err != nil || !u.IsAbs() || u.Host == "" {
		return fmt.Errorf("%s: %q is not an absolute URL, such as https://agent.example/.well-known/alignment-card.json", memberCardURL, text)
	}
	return nil
}
