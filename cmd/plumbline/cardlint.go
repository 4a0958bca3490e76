package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/signature"
)

type cardLintCommand struct {
	Files []string `arg:"" name:"file" help:"Files of cards (JSON objects, gzipped or not); - is standard input."`
	JSON  bool     `help:"Print one JSON object a card."`
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
	if err == nil && faulty > 0 {
		return errFoundBad
	}
	return err
}

func lint(o *cardOutcome, raw []byte) error {
	o.Status = lintValid
	compiled, err := aap.Register(raw)
	var refusal *schema.Refusal
	switch {
	case errors.As(err, &refusal) && foreignSignature(raw):
		return lintForeign(o, raw, refusal)
	case errors.As(err, &refusal):
		o.Status, o.Faults = lintFaulty, refusal.Faults
		return nil
	case err != nil:
		return err
	}
	o.Hints = aap.Lint(compiled)
	return nil
}

// foreignSignature reports whether a card is signed with a key that it does not
// list: only the registry knows whether the key is one of the agent's.
func foreignSignature(raw []byte) bool {
	card, err := schema.DecodeCard(raw)
	if err != nil || card.Signature == nil {
		return false
	}
	return errors.Is(signature.Verify(card.Raw, *card.Signature, card.Keys), signature.ErrUnknownKey)
}

// lintForeign examines everything in a card except its signature.
func lintForeign(o *cardOutcome, raw []byte, refusal *schema.Refusal) error {
	for _, fault := range refusal.Faults {
		if fault.Pointer != "/signature" {
			o.Status, o.Faults = lintFaulty, append(o.Faults, fault)
		}
	}
	if o.Status == lintFaulty {
		return nil
	}
	card, err := schema.DecodeCard(raw)
	if err != nil {
		return fmt.Errorf("read a card that was read before: %w", err)
	}
	o.Hints = append(aap.Lint(aap.Compile(card)), schema.Hint{
		Type: "foreign_signature", Pointer: "/signature",
		Description: "signed with a key that the card does not list: the registry takes it only if that is a key of the agent's card before, or an issuer's",
	})
	return nil
}
