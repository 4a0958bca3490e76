package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/plumbline/plumbline/cmd/plumbline/publisher"
	"github.com/plumbline/plumbline/schema"
)

type cardPutCommand struct {
	ingestFlags `embed:""`
	Files       []string `arg:"" name:"file" help:"Files of cards (JSON objects, gzipped or not); - is standard input."`
	JSON        bool     `help:"Print one JSON object a card."`
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
	client, err := c.client(ctx)
	if err != nil {
		return err
	}
	refused := 0
	err = eachCard(ctx, c.Files, con.in, func(o *cardOutcome, raw []byte) error {
		if err := putCard(ctx, client, o, raw); err != nil {
			return err
		}
		if o.Status == publisher.Refused {
			refused++
		}
		return o.write(con.out, c.JSON)
	})
	if err == nil && refused > 0 {
		return errFoundBad
	}
	return err
}

func putCard(ctx context.Context, client *publisher.Client, o *cardOutcome, raw []byte) error {
	o.Status = publisher.Refused
	if o.CardID == "" {
		o.Faults = []schema.Fault{{Pointer: "/card_id", Message: "is missing (required)"}}
		return nil
	}
	created, err := client.PutCard(ctx, o.CardID, raw)
	var problem *publisher.Problem
	switch {
	case errors.As(err, &problem) && problem.Code < 500 && problem.Code != 401:
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
	return nil
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
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) && number == 1 {
			return fmt.Errorf("%w: %s holds no card", errNothing, nameOf(name))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read card %d of %s: %w", number, nameOf(name), err)
		}
		if err := f(&cardOutcome{File: nameOf(name), Number: number, CardID: cardIDOf(raw), Faults: []schema.Fault{}}, raw); err != nil {
			return err
		}
	}
}

// cardIDOf returns the card_id, empty if there is none.
func cardIDOf(raw []byte) string {
	var ids struct {
		CardID string `json:"card_id"`
	}
	if json.Unmarshal(raw, &ids) != nil {
		return ""
	}
	return ids.CardID
}

// write prints the outcome; in text form with a line for each fault and hint.
func (o *cardOutcome) write(w io.Writer, asJSON bool) error {
	if asJSON {
		return writeJSON(w, o)
	}
	head := fmt.Sprintf("%s:%d: %s", o.File, o.Number, o.Status)
	if o.CardID != "" {
		head += " " + printable(o.CardID)
	}
	var lines []string
	for _, fault := range o.Faults {
		lines = append(lines, head+": "+placed(fault.Pointer, fault.Message))
	}
	for _, hint := range o.Hints {
		lines = append(lines, fmt.Sprintf("%s:%d: warning: %s (%s)", o.File, o.Number, placed(hint.Pointer, hint.Description), hint.Type))
	}
	if len(o.Faults) == 0 {
		lines = append([]string{head}, lines...)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// placed returns a text with the JSON pointer that it is about.
func placed(pointer, text string) string {
	if pointer != "" {
		text = pointer + ": " + text
	}
	return printable(text)
}
