package main

import (
	"cmp"
	"context"

	"github.com/plumbline/plumbline/cmd/plumbline/publisher"
)

// cards registers the cards of a file. A refused card does not prevent the registration of
// the others.
func (s *sending) cards(ctx context.Context, name string) error {
	return eachCardOf(ctx, name, s.con.in, func(o *cardOutcome, raw []byte) error {
		if err := putCard(ctx, s.client, o, raw); err != nil {
			return err
		}
		switch o.Status {
		case cardRegistered:
			s.summary.CardsRegistered++
		case cardKnown:
			s.summary.CardsKnown++
		default:
			s.summary.CardsRefused++
			return s.refuse(&refusal{File: o.File, Line: o.Number, CardID: cmp.Or(o.CardID, "card"), Status: publisher.Refused, Faults: o.Faults})
		}
		return nil
	})
}
