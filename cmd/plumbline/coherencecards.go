package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/plumbline/plumbline/aap/coherence"
	"github.com/plumbline/plumbline/cmd/plumbline/publisher"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/signature"
)

// cardFinder finds cards in files and in the registry of an ingest. It looks for the
// ingest only at the first card that is not in a file.
type cardFinder struct {
	flags  *ingestFlags
	client *publisher.Client
}

// parties finds the card of each argument. If one cannot be found, the
// error wraps errNothing.
func (f *cardFinder) parties(ctx context.Context, names []string) ([]coherence.Party, error) {
	parties := make([]coherence.Party, len(names))
	for i, name := range names {
		find := fromFile
		if _, err := os.Stat(name); err != nil { // an id can contain characters that a file name cannot
			find = f.registered
		}
		var err error
		if parties[i], err = find(ctx, name); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", errNothing, name, err)
		}
	}
	return parties, nil
}

// fromFile reads a card that no registry has examined. A card whose signature does not match
// its own keys is an error.
func fromFile(ctx context.Context, path string) (party coherence.Party, err error) {
	raw, err := readObject(ctx, path, nil)
	if err != nil {
		return party, err
	}
	if party, err = partyOf(raw, time.Time{}); err != nil || party.Card.Signature == nil {
		return party, err
	}
	err = signature.Verify(party.Card.Raw, *party.Card.Signature, party.Card.Keys)
	if err != nil && !errors.Is(err, signature.ErrUnknownKey) { // the key may be that of an earlier card, or an issuer's
		return party, err
	}
	return party, nil
}

// registered finds the card with an id. If there is none, it finds the card of the agent with
// that id: the newest in force, else the newest, and the check then reports why that card
// does not count.
func (f *cardFinder) registered(ctx context.Context, id string) (party coherence.Party, err error) {
	if f.client == nil {
		if f.client, err = f.flags.client(ctx); err != nil {
			return party, err
		}
	}
	raw, err := f.client.Card(ctx, id)
	if !isMissing(err) {
		if err != nil {
			return party, err
		}
		return f.withRevocation(ctx, raw)
	}
	listed, err := f.client.Cards(ctx, id)
	if err != nil {
		return party, err
	}
	if len(listed) == 0 {
		return party, errors.New("no file, no registered card, and no agent that has registered one")
	}
	card := listed[max(0, slices.IndexFunc(listed, func(l cards.Listing) bool { return l.State == cards.InForce }))]
	if raw, err = f.client.Card(ctx, card.CardID); err != nil {
		return party, err
	}
	return partyOf(raw, card.RevokedAt)
}

// withRevocation adds a card's revocation, from the list of its agent's cards.
func (f *cardFinder) withRevocation(ctx context.Context, raw []byte) (coherence.Party, error) {
	party, err := partyOf(raw, time.Time{})
	if err != nil {
		return party, err
	}
	listed, err := f.client.Cards(ctx, party.AgentID)
	for _, card := range listed {
		if card.CardID == party.CardID {
			party.RevokedAt = card.RevokedAt
		}
	}
	return party, err
}

func partyOf(raw []byte, revoked time.Time) (coherence.Party, error) {
	card, err := schema.DecodeCard(raw)
	if err != nil {
		return coherence.Party{}, err
	}
	return coherence.Party{Card: card, CardID: card.CardID, AgentID: card.AgentID, RevokedAt: revoked}, nil
}

// isMissing reports whether the error is a 404 of the service.
func isMissing(err error) bool {
	var problem *publisher.Problem
	return errors.As(err, &problem) && problem.Code == http.StatusNotFound
}
