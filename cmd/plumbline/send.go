package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/plumbline/plumbline/schema"
)

type sendCommand struct {
	ingestFlags `embed:""`
	Files       []string `arg:"" optional:"" name:"file" help:"Files of traces, one JSON object a line, gzipped or not; - is standard input."`
	Cards       string   `placeholder:"FILE" help:"Register the cards in this file first (JSON objects, gzipped or not)."`
	Rate        float64  `placeholder:"N" help:"Most traces a second; as fast as it goes where it is missing."`
	FromLine    int      `default:"1" placeholder:"N" help:"Begin with this line: goes on where a send of one file was broken off."`
	Seal        bool     `help:"In the end, have every session sealed that was seen."`
	JSON        bool     `help:"Print one JSON object for each line or card that was refused or warned of, then one with the summary."`
}

// summary counts the results of a send.
type summary struct {
	CardsRegistered int `json:"cards_registered"`
	CardsKnown      int `json:"cards_known"`
	CardsRefused    int `json:"cards_refused"`
	Sent            int `json:"sent"`
	Accepted        int `json:"accepted"`
	Duplicates      int `json:"duplicates"`
	Refused         int `json:"refused"`
	Warned          int `json:"warned"` // stored, with warnings
	SessionsEnded   int `json:"sessions_ended"`
}

// refusal is a line or card that was refused, or a line that was stored with warnings.
type refusal struct {
	File    string         `json:"file"`
	Line    int            `json:"line"` // of the traces; the position among the cards
	TraceID string         `json:"trace_id,omitempty"`
	CardID  string         `json:"card_id,omitempty"`
	Status  string         `json:"status"`
	Faults  []schema.Fault `json:"faults"`

	Warnings []schema.Warning `json:"warnings,omitempty"`
}

// Run sends cards, then traces, then the requests to seal.
func (c *sendCommand) Run(ctx context.Context, con *console) error {
	if err := c.validate(); err != nil {
		return err
	}
	client, err := c.client(ctx)
	if err != nil {
		return err
	}
	s := &sending{client: client, con: con, json: c.JSON, pace: newPace(c.Rate), seal: c.Seal, sessions: map[sessionKey]bool{}}
	client.Waiting = s.waiting
	err = s.all(ctx, c)
	s.watch.clear()
	if err != nil { // the refusals until then are already printed
		return errors.Join(err, s.summarize())
	}
	if err := s.summarize(); err != nil {
		return err
	}
	if s.summary.Refused+s.summary.CardsRefused > 0 {
		return errFoundBad
	}
	return nil
}

func (c *sendCommand) validate() error {
	switch {
	case len(c.Files) == 0 && c.Cards == "":
		return fmt.Errorf("%w: name files of traces, or - for standard input", errNothing)
	case c.FromLine != 1 && len(c.Files) != 1:
		return usagef("--from-line is about one file: name only that one")
	case c.FromLine < 1:
		return usagef("--from-line: %d: want 1 or more", c.FromLine)
	case c.Rate < 0:
		return usagef("--rate: %g: want more than 0", c.Rate)
	}
	return nil
}

// waiting reports that ingest requires a pause, once for each reason.
func (s *sending) waiting(err error) {
	if why := err.Error(); why != s.why {
		s.why = why
		s.watch.clear()
		fmt.Fprintf(s.con.errs, "waiting: %s\n", why)
	}
}

// summarize prints the summary.
func (s *sending) summarize() error {
	t := &s.summary
	if s.json {
		return writeJSON(s.con.out, t)
	}
	if err := s.warned.print(s.con.out); err != nil {
		return err
	}
	text := fmt.Sprintf("%d sent: %d accepted, %d duplicates, %d refused\n", t.Sent, t.Accepted, t.Duplicates, t.Refused)
	if n := t.CardsRegistered + t.CardsKnown + t.CardsRefused; n > 0 {
		text += fmt.Sprintf("%d cards: %d registered, %d known before, %d refused\n", n, t.CardsRegistered, t.CardsKnown, t.CardsRefused)
	}
	if s.seal {
		text += fmt.Sprintf("%d sessions asked to be sealed\n", t.SessionsEnded)
	}
	_, err := io.WriteString(s.con.out, text)
	return err
}

// refuse prints a refusal.
func (s *sending) refuse(r *refusal) error {
	s.watch.clear()
	if s.json {
		return writeJSON(s.con.out, r)
	}
	what := fmt.Sprintf("%s:%d: %s", r.File, r.Line, r.Status)
	if id := r.TraceID + r.CardID; id != "" {
		what += " " + printable(id)
	}
	if len(r.Faults) == 0 {
		_, err := fmt.Fprintln(s.con.out, what)
		return err
	}
	for _, f := range r.Faults {
		if f.Pointer != "" {
			f.Pointer += ": "
		}
		if _, err := io.WriteString(s.con.out, what+": "+printable(f.Pointer+f.Message)+"\n"); err != nil {
			return err
		}
	}
	return nil
}
