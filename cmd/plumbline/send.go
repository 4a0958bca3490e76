package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/time/rate"

	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/schema"
)

type sendCommand struct {
	ingestFlags `embed:""`
	Files       []string `arg:"" optional:"" name:"file" help:"Files of traces, one JSON object a line, gzipped or not; - is standard input."`
	Cards       string   `placeholder:"FILE" help:"Register the cards in this file first (JSON objects, gzipped or not)."`
	Rate        float64  `placeholder:"N" help:"Send at most N traces per second. Default: as fast as possible."`
	FromLine    int      `default:"1" placeholder:"N" help:"Begin with this line, to continue a send of one file that was interrupted."`
	Seal        bool     `help:"At the end, request that every session that was sent be sealed."`
	JSON        bool     `help:"Print one JSON object for each line or card that was refused or has warnings, then one with the summary."`
}

// Help returns the examples.
func (*sendCommand) Help() string {
	return examples(
		"plumbline send session.jsonl --cards card.json",
		"plumbline send traces.jsonl.gz --rate 1000 --seal",
		"plumbline send traces.jsonl --url https://ingest.example:8080 --token TOKEN",
	)
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

// refusal is a line or card that was refused, or that was stored with warnings.
type refusal struct {
	File    string         `json:"file"`
	Line    int            `json:"line"` // of the traces; the position among the cards
	TraceID string         `json:"trace_id,omitempty"`
	CardID  string         `json:"card_id,omitempty"`
	Status  string         `json:"status"`
	Faults  []schema.Fault `json:"faults"`

	Warnings []schema.Warning `json:"warnings,omitempty"`
}

// sending is a running send.
type sending struct {
	*sendCommand
	ingest  *client.Publisher
	con     *console
	pace    *rate.Limiter // its burst is the most lines of one request
	watch   *progress
	summary summary
	warned  warned
	waiting string // the last reason for a pause

	sessions map[[2]string]bool // agent and session ids of the stored lines, for --seal
	decoder  schema.Decoder
	trace    schema.Trace
}

// A slice of lines is sent in one request.
const (
	sliceLines = 1000
	sliceBytes = 8 << 20
)

// Run sends cards, then traces, then the requests to seal.
func (c *sendCommand) Run(ctx context.Context, con *console) error {
	switch {
	case len(c.Files) == 0 && c.Cards == "":
		return fmt.Errorf("%w: name files of traces, or - for standard input", errNothing)
	case c.FromLine != 1 && len(c.Files) != 1:
		return usagef("--from-line applies to one file: name only that one")
	case c.FromLine < 1:
		return usagef("--from-line: %d: want 1 or more", c.FromLine)
	case c.Rate < 0:
		return usagef("--rate: %g: want more than 0", c.Rate)
	}
	ingest, err := c.publisher(ctx)
	if err != nil {
		return err
	}
	s := &sending{sendCommand: c, ingest: ingest, con: con, watch: newProgress(con.errs, "sent"), sessions: map[[2]string]bool{}}
	s.pace = rate.NewLimiter(rate.Inf, sliceLines)
	if c.Rate > 0 {
		s.pace = rate.NewLimiter(rate.Limit(c.Rate), max(1, min(sliceLines, int(c.Rate/10)))) // the lines of a tenth of a second
	}
	ingest.Waiting = func(err error) { // once for each reason
		if why := err.Error(); why != s.waiting {
			s.waiting = why
			s.watch.clear()
			fmt.Fprintf(con.errs, "waiting: %s\n", why)
		}
	}
	err = s.all(ctx)
	s.watch.clear()
	err = errors.Join(err, s.summarize()) // also after an error: the refusals until then are already printed
	return found(err, s.summary.Refused+s.summary.CardsRefused == 0)
}

// all sends everything that the command line names.
func (s *sending) all(ctx context.Context) error {
	if s.Cards != "" {
		if err := s.cards(ctx); err != nil {
			return err
		}
	}
	for _, name := range s.Files {
		if err := s.file(ctx, name); err != nil {
			return err
		}
	}
	if len(s.Files) > 0 && s.summary.Sent == 0 {
		return fmt.Errorf("%w: there is no line to send", errNothing)
	}
	for id := range s.sessions {
		if err := s.ingest.EndSession(ctx, id[0], id[1]); err != nil {
			return err
		}
		s.summary.SessionsEnded++
	}
	return nil
}

// cards registers the cards of a file. A refused card does not prevent the registration of
// the others.
func (s *sending) cards(ctx context.Context) error {
	return eachCardOf(ctx, s.Cards, s.con.in, func(o *cardOutcome, raw []byte) error {
		if err := putCard(ctx, s.ingest, o, raw); err != nil {
			return err
		}
		switch o.Status {
		case cardRegistered:
			s.summary.CardsRegistered++
		case cardKnown:
			s.summary.CardsKnown++
		default:
			s.summary.CardsRefused++
			return s.refuse(&refusal{File: o.File, Line: o.Number, CardID: cmp.Or(o.CardID, "card"), Status: client.Refused, Faults: o.Faults})
		}
		var warnings []schema.Warning
		for _, hint := range o.Hints {
			warnings = append(warnings, schema.Warning{Code: hint.Type, Pointer: hint.Pointer, Message: hint.Description})
		}
		return s.warn(&refusal{File: o.File, Line: o.Number, CardID: o.CardID, Status: o.Status, Faults: []schema.Fault{}, Warnings: warnings})
	})
}

// file sends the lines of one file, in their order.
func (s *sending) file(ctx context.Context, name string) error {
	in, err := openInput(ctx, name, s.con.in)
	if err != nil {
		return err
	}
	defer in.Close()
	lines := newLineReader(in)
	for {
		slice, err := lines.slice(s.FromLine, s.pace.Burst(), sliceBytes)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read %s after line %d: %w", nameOf(name), lines.number, err)
		}
		if len(slice) > 0 {
			if err := s.slice(ctx, name, slice); err != nil {
				return fmt.Errorf("%w\nContinue with: plumbline send %s --from-line %d (a line that is sent twice is stored once)", tokenHint(err), name, slice[0].number)
			}
		}
		if err != nil {
			return nil
		}
	}
}

// slice sends lines and processes the outcome of each.
func (s *sending) slice(ctx context.Context, name string, slice []line) error {
	if err := s.pace.WaitN(ctx, len(slice)); err != nil {
		return err
	}
	raw := make([][]byte, len(slice))
	for i := range slice {
		raw[i] = slice[i].text
	}
	outcomes, err := s.ingest.Publish(ctx, raw)
	for i := range outcomes {
		if outcomes[i].Status == "" { // the answer broke off
			continue
		}
		if err := s.account(name, &slice[i], &outcomes[i]); err != nil {
			return err
		}
	}
	s.watch.show(s.summary.Sent)
	return err
}

func (s *sending) account(name string, l *line, o *client.Outcome) error {
	s.summary.Sent++
	switch o.Status {
	case client.Accepted:
		s.summary.Accepted++
	case client.Duplicate:
		s.summary.Duplicates++
	default:
		s.summary.Refused++
		if len(o.Faults) == 0 { // already shown with the first line of a value of several lines
			return nil
		}
		return s.refuse(&refusal{File: nameOf(name), Line: l.number, TraceID: o.TraceID, Status: o.Status, Faults: o.Faults})
	}
	if s.Seal {
		if err := s.decoder.Admit(&s.trace, "", l.text); err != nil {
			return fmt.Errorf("read the session of a line that was accepted: %w", err)
		}
		s.sessions[[2]string{s.trace.AgentID, schema.SessionID(&s.trace)}] = true
	}
	if len(o.Warnings) > 0 {
		s.summary.Warned++
	}
	return s.warn(&refusal{File: nameOf(name), Line: l.number, TraceID: o.TraceID, Status: o.Status, Faults: []schema.Fault{}, Warnings: o.Warnings})
}

// warn prints the warnings of a line or card that was stored; as text they are shown at the end.
func (s *sending) warn(r *refusal) error {
	switch {
	case len(r.Warnings) == 0:
		return nil
	case !s.JSON:
		s.warned.add(r.File, r.Line, r.Warnings)
		return nil
	}
	s.watch.clear()
	return writeJSON(s.con.out, r)
}

// refuse prints a refusal.
func (s *sending) refuse(r *refusal) error {
	s.watch.clear()
	if s.JSON {
		return writeJSON(s.con.out, r)
	}
	out := lineWriter{w: s.con.out}
	out.result(r.File, r.Line, r.Status, r.TraceID+r.CardID, r.Faults)
	return out.err
}

// summarize prints the summary.
func (s *sending) summarize() error {
	t := &s.summary
	if s.JSON {
		return writeJSON(s.con.out, t)
	}
	out := lineWriter{w: s.con.out}
	s.warned.print(&out)
	out.printf("%d sent: %d accepted, %d duplicates, %d refused\n", t.Sent, t.Accepted, t.Duplicates, t.Refused)
	if n := t.CardsRegistered + t.CardsKnown + t.CardsRefused; n > 0 {
		out.printf("%d cards: %d registered, %d known before, %d refused\n", n, t.CardsRegistered, t.CardsKnown, t.CardsRefused)
	}
	if s.Seal {
		out.printf("%d sessions will be sealed\n", t.SessionsEnded)
	}
	return out.err
}

// warned collects the warnings of many lines: equal warnings are shown once.
type warned struct {
	first map[schema.Warning]int // index in kinds
	kinds []warning
	more  int // lines whose warnings are not shown
}

// warning is a kind of warning, with the first line that has it.
type warning struct {
	schema.Warning
	file  string
	line  int
	lines int
}

// maxWarnings bounds the number of kinds that are shown.
const maxWarnings = 50

func (w *warned) add(file string, line int, warnings []schema.Warning) {
	for _, one := range warnings {
		at, known := w.first[one]
		switch {
		case known:
			w.kinds[at].lines++
		case len(w.kinds) < maxWarnings:
			if w.first == nil {
				w.first = map[schema.Warning]int{}
			}
			w.first[one] = len(w.kinds)
			w.kinds = append(w.kinds, warning{one, file, line, 1})
		default:
			w.more++
		}
	}
}

// print shows each kind once.
func (w *warned) print(out *lineWriter) {
	for _, one := range w.kinds {
		more := ""
		if one.lines > 1 {
			more = fmt.Sprintf(" (and %d more lines)", one.lines-1)
		}
		out.printf("%s:%d: warning: %s%s\n", one.file, one.line, placed(one.Pointer, one.Message), more)
	}
	if w.more > 0 {
		out.printf("%d more warnings: --json shows them all\n", w.more)
	}
}
