package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/signature"
)

type cardPutCommand struct {
	ingestFlags `embed:""`
	Files       []string `arg:"" name:"file" help:"Files of cards (JSON objects, gzipped or not); - is standard input."`
	JSON        bool     `help:"Print one JSON object for each card."`
}

// Help returns the examples.
func (*cardPutCommand) Help() string {
	return examples(
		"plumbline card put card.json",
		"plumbline card put card.json --url https://ingest.example:8080 --token TOKEN",
	)
}

// The results of registering a card.
const (
	cardRegistered = "registered"
	cardKnown      = "known" // the same content was registered before
)

// cardOutcome is the result of put or lint for one card of a file.
type cardOutcome struct {
	File   string         `json:"file"`
	Number int            `json:"number"` // of the card in the file
	CardID string         `json:"card_id"`
	Status string         `json:"status"`
	Faults []schema.Fault `json:"faults"`
	Hints  []schema.Hint  `json:"hints,omitempty"` // from lint
}

// Run registers every card of the files. A refused card does not prevent the registration
// of the others.
func (c *cardPutCommand) Run(ctx context.Context, con *console) error {
	ingest, err := c.publisher(ctx)
	if err != nil {
		return err
	}
	refused := 0
	err = eachCard(ctx, c.Files, con.in, func(o *cardOutcome, raw []byte) error {
		if err := putCard(ctx, ingest, o, raw); err != nil {
			return err
		}
		if o.Status == client.Refused {
			refused++
		}
		return o.write(con.out, c.JSON)
	})
	return found(err, refused == 0)
}

func putCard(ctx context.Context, ingest *client.Publisher, o *cardOutcome, raw []byte) error {
	o.Status = client.Refused
	if o.CardID == "" {
		o.Faults = []schema.Fault{{Pointer: "/card_id", Message: "is missing (required)"}}
		return nil
	}
	created, err := ingest.PutCard(ctx, o.CardID, raw)
	problem, answered := errors.AsType[*client.Problem](err)
	switch {
	case answered && problem.Code < 500 && problem.Code != http.StatusUnauthorized:
		o.Faults = problem.Faults
		if len(o.Faults) == 0 {
			o.Faults = []schema.Fault{{Message: problem.Message}}
		}
		return nil
	case err != nil:
		return hinted(err)
	case created:
		o.Status = cardRegistered
	default:
		o.Status = cardKnown
	}
	if card, err := schema.DecodeCard(raw); err == nil {
		o.Hints = expired(card, time.Now())
	}
	return nil
}

// lintExpired is a hint that needs a clock, which packages schema and aap do not have.
const lintExpired = "expired_card"

// expired returns a hint if the card has expired.
func expired(card *schema.Card, now time.Time) []schema.Hint {
	if card.ExpiresAt.IsZero() || now.Before(card.ExpiresAt) {
		return nil
	}
	return []schema.Hint{{Type: lintExpired, Pointer: "/expires_at",
		Description: "the card expired at " + card.ExpiresAt.UTC().Format(time.RFC3339) + ": later traces violate it (CARD_EXPIRED); issue a card with a later expiry"}}
}

// eachCard calls f with every JSON value of the files. Invalid JSON ends it with an error.
func eachCard(ctx context.Context, files []string, stdin io.Reader, f func(o *cardOutcome, raw []byte) error) error {
	for _, name := range files {
		if err := eachCardOf(ctx, name, stdin, f); err != nil {
			return err
		}
	}
	return nil
}

func eachCardOf(ctx context.Context, name string, stdin io.Reader, f func(o *cardOutcome, raw []byte) error) error {
	in, err := openInput(ctx, name, stdin)
	if err != nil {
		return err
	}
	defer in.Close()
	decoder := json.NewDecoder(in)
	for number := 1; ; number++ {
		var raw json.RawMessage
		switch err := decoder.Decode(&raw); {
		case errors.Is(err, io.EOF) && number == 1:
			return fmt.Errorf("%w: %s has no card", errNothing, nameOf(name))
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return fmt.Errorf("%s ends in the middle of card %d: is the file whole?", nameOf(name), number)
		case err != nil:
			return fmt.Errorf("read card %d of %s: %w", number, nameOf(name), err)
		}
		var ids struct {
			CardID string `json:"card_id"`
		}
		if json.Unmarshal(raw, &ids) != nil {
			ids.CardID = ""
		}
		if err := f(&cardOutcome{File: nameOf(name), Number: number, CardID: ids.CardID, Faults: []schema.Fault{}}, raw); err != nil {
			return err
		}
	}
}

// write prints the outcome; in text form with a line for each fault and hint.
func (o *cardOutcome) write(w io.Writer, asJSON bool) error {
	if asJSON {
		return writeJSON(w, o)
	}
	out := lineWriter{w: w}
	out.result(o.File, o.Number, o.Status, o.CardID, o.Faults)
	for _, hint := range o.Hints {
		out.printf("%s:%d: warning: %s (%s)\n", o.File, o.Number, placed(hint.Pointer, hint.Description), hint.Type)
	}
	return out.err
}

type cardLintCommand struct {
	Files []string `arg:"" name:"file" help:"Files of cards (JSON objects, gzipped or not); - is standard input."`
	JSON  bool     `help:"Print one JSON object for each card."`
}

// Help returns the examples.
func (*cardLintCommand) Help() string {
	return examples(
		"plumbline card lint card.json",
		"plumbline card lint --json card.json | jq .faults",
	)
}

// The results of lint for a card.
const (
	lintValid  = "valid"
	lintFaulty = "faulty"
)

// Run examines cards as registration does, and also gives hints. Hints alone are no failure.
func (c *cardLintCommand) Run(ctx context.Context, con *console) error {
	faulty := 0
	err := eachCard(ctx, c.Files, con.in, func(o *cardOutcome, raw []byte) error {
		if err := lint(o, raw); err != nil {
			return err
		}
		if o.Status == lintFaulty {
			faulty++
		}
		return o.write(con.out, c.JSON)
	})
	return found(err, faulty == 0)
}

func lint(o *cardOutcome, raw []byte) error {
	o.Status = lintValid
	compiled, err := aap.Register(raw)
	if err == nil {
		o.Hints = append(aap.Lint(compiled), expired(compiled.Card, time.Now())...)
		return nil
	}
	var refusal *schema.Refusal
	if !errors.As(err, &refusal) {
		return err
	}
	o.Faults = refusal.Faults
	// Only the registry knows whether a key that the card does not list is one of the agent's.
	card, err := schema.DecodeCard(raw)
	foreign := err == nil && card.Signature != nil && errors.Is(signature.Verify(card.Raw, *card.Signature, card.Keys), signature.ErrUnknownKey)
	if foreign {
		o.Faults = slices.DeleteFunc(o.Faults, func(fault schema.Fault) bool { return fault.Pointer == "/signature" })
	}
	if !foreign || len(o.Faults) > 0 {
		o.Status = lintFaulty
		return nil
	}
	o.Hints = append(aap.Lint(aap.Compile(card)), schema.Hint{
		Type: "foreign_signature", Pointer: "/signature",
		Description: "signed with a key that the card does not list: the registry accepts it only if the key belongs to the agent's previous card or to an issuer",
	})
	return nil
}
