package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/cmd/plumbline/publisher"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/schema"
)

type cardCommands struct {
	Put    cardPutCommand    `cmd:"" help:"Register cards."`
	Get    cardGetCommand    `cmd:"" help:"Show a registered card."`
	LS     cardLSCommand     `cmd:"" name:"ls" help:"List registered cards."`
	Revoke cardRevokeCommand `cmd:"" help:"Revoke a card, from now on and for good."`
	Lint   cardLintCommand   `cmd:"" help:"Look for faults, and for what is allowed and probably not meant, offline."`
	A2A    cardA2ACommands   `cmd:"" name:"a2a" help:"Carry a card in an A2A agent card, offline."`
}

type cardGetCommand struct {
	ingestFlags `embed:""`
	ID          string `arg:"" help:"The card_id."`
	JSON        bool   `help:"Print the card as it was registered, byte for byte."`
}

// Run shows one card; in text form with its current state.
func (c *cardGetCommand) Run(ctx context.Context, con *console) error {
	client, err := c.client(ctx)
	if err != nil {
		return err
	}
	raw, err := client.Card(ctx, c.ID)
	if err != nil {
		return hinted(err)
	}
	if c.JSON {
		_, err := con.out.Write(append(raw, '\n'))
		return err
	}
	card, err := schema.DecodeCard(raw)
	if err != nil {
		return fmt.Errorf("read card %q: %w", c.ID, err)
	}
	listed, err := client.Cards(ctx, card.AgentID)
	if err != nil {
		return hinted(err)
	}
	text := card.Text()
	if i := slices.IndexFunc(listed, func(l cards.Listing) bool { return l.CardID == card.CardID }); i >= 0 {
		text += "\nIn the registry it is " + stateText(&listed[i]) + ".\n"
	}
	_, err = io.WriteString(con.out, text)
	return err
}

// stateText returns the current state of a card.
func stateText(l *cards.Listing) string {
	switch l.State {
	case cards.Revoked:
		return fmt.Sprintf("revoked since %s: %s", cell(l.RevokedAt), printable(l.Reason))
	case cards.Expired:
		return "expired"
	case cards.NotYetIssued:
		return "not yet issued"
	}
	return "in force"
}

type cardLSCommand struct {
	ingestFlags `embed:""`
	Agent       string `placeholder:"AGENT" help:"Only the cards of this agent."`
	JSON        bool   `help:"Print one JSON object a card."`
}

// Run lists cards, the newest of each agent first.
func (c *cardLSCommand) Run(ctx context.Context, con *console) error {
	client, err := c.client(ctx)
	if err != nil {
		return err
	}
	listed, err := client.Cards(ctx, c.Agent)
	if err != nil {
		return hinted(err)
	}
	if len(listed) == 0 {
		return fmt.Errorf("%w: no such card is registered: register one with: plumbline card put FILE", errNothing)
	}
	if c.JSON {
		for i := range listed {
			if err := writeJSON(con.out, &listed[i]); err != nil {
				return err
			}
		}
		return nil
	}
	return writeListing(con.out, listed)
}

func writeListing(w io.Writer, listed []cards.Listing) error {
	t := newTable(w)
	if err := t.row("CARD", "AGENT", "ISSUED", "EXPIRES", "STATE"); err != nil {
		return err
	}
	for i := range listed {
		l := &listed[i]
		var expires any
		if !l.ExpiresAt.IsZero() {
			expires = l.ExpiresAt
		}
		if err := t.row(l.CardID, l.AgentID, l.IssuedAt, expires, stateText(l)); err != nil {
			return err
		}
	}
	return t.Flush()
}

type cardRevokeCommand struct {
	ingestFlags `embed:""`
	ID          string `arg:"" help:"The card_id."`
	Reason      string `required:"" placeholder:"TEXT" help:"Why: everyone will read it."`
	JSON        bool   `help:"Print the revocation as one JSON object."`
}

// Run revokes a card. An earlier revocation stays in force.
func (c *cardRevokeCommand) Run(ctx context.Context, con *console) error {
	if strings.TrimSpace(c.Reason) == "" {
		return usagef("--reason: is empty: say why the card is revoked")
	}
	client, err := c.client(ctx)
	if err != nil {
		return err
	}
	revocation, created, err := client.Revoke(ctx, c.ID, c.Reason)
	if err != nil {
		return hinted(err)
	}
	if c.JSON {
		return writeJSON(con.out, revocation)
	}
	what := "revoked"
	if !created {
		what = "was revoked before"
	}
	_, err = fmt.Fprintf(con.out, "%s: card %s of agent %s, since %s: %s\n", what, printable(revocation.CardID),
		printable(revocation.AgentID), cell(revocation.RevokedAt), printable(revocation.Reason))
	return err
}

// hinted adds to an error of ingest what the user can do.
func hinted(err error) error {
	var problem *publisher.Problem
	if !errors.As(err, &problem) {
		return err
	}
	for _, fault := range problem.Faults {
		err = fmt.Errorf("%w; %s", err, placed(fault.Pointer, fault.Message))
	}
	switch problem.Code {
	case http.StatusNotFound:
		return fmt.Errorf("%w: %w; list the cards that are there with: plumbline card ls", errNothing, err)
	case http.StatusUnauthorized:
		return fmt.Errorf("%w; here with --token TOKEN", err)
	}
	return err
}
