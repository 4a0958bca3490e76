package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/plumbline/plumbline/cmd/plumbline/publisher"
	"github.com/plumbline/plumbline/schema"
)

// cards registers the cards of a file. A refused one does not keep the others
// from being registered.
func (s *sending) cards(ctx context.Context, name string) error {
	in, err := openInput(name, s.con.in)
	if err != nil {
		return err
	}
	defer in.Close()
	decoder := json.NewDecoder(in)
	for number := 1; ; number++ {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			return s.someCards(name)
		} else if err != nil {
			return fmt.Errorf("read card %d of %s: %w", number, nameOf(name), err)
		}
		if err := s.card(ctx, name, number, raw); err != nil {
			return err
		}
	}
}

func (s *sending) someCards(name string) error {
	if s.summary.CardsRegistered+s.summary.CardsKnown+s.summary.CardsRefused == 0 {
		return fmt.Errorf("%w: %s holds no card", errNothing, nameOf(name))
	}
	return nil
}

func (s *sending) card(ctx context.Context, name string, number int, raw []byte) error {
	var id struct {
		CardID string `json:"card_id"`
	}
	if err := json.Unmarshal(raw, &id); err != nil || id.CardID == "" {
		return s.refuseCard(name, number, "", []schema.Fault{{Pointer: "/card_id", Message: "is required and missing"}})
	}
	created, err := s.client.PutCard(ctx, id.CardID, raw)
	var problem *publisher.Problem
	switch {
	case errors.As(err, &problem) && problem.Code < 500 && problem.Code != 401:
		faults := problem.Faults
		if len(faults) == 0 {
			faults = []schema.Fault{{Message: problem.Message}}
		}
		return s.refuseCard(name, number, id.CardID, faults)
	case err != nil:
		return err
	case created:
		s.summary.CardsRegistered++
	default:
		s.summary.CardsKnown++
	}
	return nil
}

func (s *sending) refuseCard(name string, number int, cardID string, faults []schema.Fault) error {
	s.summary.CardsRefused++
	return s.refuse(&refusal{File: nameOf(name), Line: number, CardID: cmp.Or(cardID, "card"), Status: publisher.Refused, Faults: faults})
}
