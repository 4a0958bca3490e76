package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/plumbline/plumbline/aivs/redact"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

type dlqCommands struct {
	Ls     dlqLsCommand     `cmd:"" help:"List dead letters: what could never be stored, and why."`
	Show   dlqShowCommand   `cmd:"" help:"Show dead letters, secrets redacted."`
	Replay dlqReplayCommand `cmd:"" help:"Send the original bytes of dead letters again."`
	Drop   dlqDropCommand   `cmd:"" help:"Mark dead letters as done with. Nothing is deleted."`
}

type dlqLsCommand struct {
	readerFlags `embed:""`
	Reason      string `help:"Only those refused for this reason."`
	Agent       string `help:"Only those of this agent, as subject or credential told."`
	All         bool   `help:"Those that were dropped or replayed, too."`
	JSON        bool   `help:"Print one JSON object a letter."`
}

// deadLetter is a dead letter for display: without its bytes, and with redacted texts.
type deadLetter struct {
	Digest   schema.Digest  `json:"digest"` // of the letter's bytes; other commands identify the letter by it
	Received time.Time      `json:"received_at"`
	Stage    string         `json:"stage"`
	Reason   string         `json:"reason"`
	AgentID  string         `json:"agent_id"`
	TraceID  string         `json:"trace_id"`
	Subject  string         `json:"subject"`
	Sequence uint64         `json:"origin_sequence"`
	State    string         `json:"state"` // open, dropped or replayed
	MarkedBy string         `json:"marked_by,omitempty"`
	Note     string         `json:"note,omitempty"`
	Faults   []schema.Fault `json:"faults"`
}

const letterOpen = "open"

func deadLetterOf(l *store.MarkedLetter) *deadLetter {
	v := &deadLetter{
		Digest: l.Digest, Received: l.Received.UTC(), Stage: l.Stage, Reason: l.Reason, AgentID: l.AgentID,
		TraceID: hideSecrets(l.TraceID), Subject: l.Subject, Sequence: l.OriginSequence, State: letterOpen, Faults: []schema.Fault{},
	}
	if l.Handled() {
		v.State, v.MarkedBy, v.Note = l.Mark, l.MarkedBy, l.Note
	}
	for i := range l.Pointers {
		v.Faults = append(v.Faults, schema.Fault{Pointer: hideSecrets(l.Pointers[i]), Message: hideSecrets(l.Messages[i])})
	}
	return v
}

// hideSecrets redacts a text that may repeat a part of the letter.
func hideSecrets(text string) string {
	hidden, _ := redact.AllRules.Text(text)
	return hidden
}

// Run lists the letters. An empty list is no error.
func (c *dlqLsCommand) Run(ctx context.Context, con *console) error {
	return c.read(ctx, func(s *store.Store) error {
		letters, err := s.MarkedLetters(ctx, "", false)
		if err != nil {
			return err
		}
		var views []*deadLetter
		for i := range letters {
			if c.wants(&letters[i]) {
				views = append(views, deadLetterOf(&letters[i]))
			}
		}
		return c.list(con.out, views)
	})
}

func (c *dlqLsCommand) wants(l *store.MarkedLetter) bool {
	return (c.All || !l.Handled()) && (c.Reason == "" || c.Reason == l.Reason) && (c.Agent == "" || c.Agent == l.AgentID)
}

func (c *dlqLsCommand) list(w io.Writer, views []*deadLetter) error {
	if c.JSON {
		for _, v := range views {
			if err := writeJSON(w, v); err != nil {
				return err
			}
		}
		return nil
	}
	t := newTable(w)
	if err := t.row("digest", "received", "stage", "reason", "agent", "state", "first fault"); err != nil {
		return err
	}
	for _, v := range views {
		first := ""
		if len(v.Faults) > 0 {
			first = v.Faults[0].Pointer + " " + v.Faults[0].Message
		}
		if err := t.row(v.Digest.String()[:12], v.Received, v.Stage, v.Reason, v.AgentID, v.State, first); err != nil {
			return err
		}
	}
	return t.Flush()
}

type dlqShowCommand struct {
	readerFlags `embed:""`
	Digest      string `arg:"" help:"Digest of the letter's bytes, or how it begins."`
	Raw         string `type:"path" placeholder:"FILE" help:"Write the original bytes, secrets and all, to a new file that only you can read."`
	JSON        bool   `help:"Print one JSON object a letter."`
}

// shownLetter is a letter with its decoded content, redacted.
type shownLetter struct {
	*deadLetter
	Bytes      int             `json:"bytes"`
	Redactions int             `json:"redactions"`
	Record     json.RawMessage `json:"record"`           // redacted; null where the bytes are no JSON
	Hidden     string          `json:"hidden,omitempty"` // why there is no record
}

// Run shows the letters of one digest.
func (c *dlqShowCommand) Run(ctx context.Context, con *console) error {
	return c.readLetters(ctx, func(s *store.Store) error {
		letters, err := lettersOf(ctx, s, c.Digest)
		if err != nil {
			return err
		}
		for i := range letters {
			if err := c.show(con.out, &letters[i]); err != nil {
				return err
			}
		}
		if c.Raw == "" {
			return nil
		}
		return writePrivate(c.Raw, letters[0].Raw)
	})
}

func shownLetterOf(l *store.MarkedLetter) *shownLetter {
	v := &shownLetter{deadLetter: deadLetterOf(l), Bytes: len(l.Raw)}
	record, redactions, err := redact.AllRules.Record(l.Raw)
	if err != nil || !json.Valid(record) {
		v.Hidden = "not JSON, so what in it is secret cannot be told: --raw writes it to a file"
		return v
	}
	v.Record, v.Redactions = record, redactions.Sum()
	return v
}

func (c *dlqShowCommand) show(w io.Writer, l *store.MarkedLetter) error {
	v := shownLetterOf(l)
	if c.JSON {
		return writeJSON(w, v)
	}
	t := newTable(w)
	lines := [][]any{
		{"digest", v.Digest.String()}, {"received", v.Received}, {"stage", v.Stage}, {"reason", v.Reason}, {"agent", v.AgentID},
		{"trace", v.TraceID}, {"subject", v.Subject}, {"sequence", v.Sequence}, {"state", v.State}, {"by", v.MarkedBy}, {"note", v.Note},
		{"bytes", v.Bytes}, {"redactions", v.Redactions},
	}
	for _, f := range v.Faults {
		lines = append(lines, []any{"fault", f.Pointer + " " + f.Message})
	}
	if v.Hidden != "" {
		lines = append(lines, []any{"record", v.Hidden})
	} else {
		lines = append(lines, []any{"record", string(v.Record)})
	}
	for _, line := range lines {
		if line[1] == "" {
			continue
		}
		if err := t.row(line...); err != nil {
			return err
		}
	}
	if err := t.row(); err != nil {
		return err
	}
	return t.Flush()
}

// lettersOf returns the letters, with their bytes, of the one digest with this beginning.
func lettersOf(ctx context.Context, s *store.Store, beginning string) ([]store.MarkedLetter, error) {
	if !isDigestBeginning(beginning) {
		return nil, usagef("%q: want at least %d of a digest's 64 lower-case hexadecimal digits", beginning, leastDigits)
	}
	letters, err := s.MarkedLetters(ctx, beginning, true)
	if err != nil {
		return nil, err
	}
	if len(letters) == 0 {
		return nil, fmt.Errorf("%w: no dead letter whose digest begins with %s", errNothing, beginning)
	}
	for i := range letters {
		if letters[i].Digest != letters[0].Digest {
			return nil, usagef("%s is the beginning of several digests: give more of it", beginning)
		}
	}
	return letters, nil
}

// leastDigits is how many digits make it unlikely that two digests have the same beginning.
const leastDigits = 8

func isDigestBeginning(text string) bool {
	if len(text) < leastDigits || len(text) > 64 {
		return false
	}
	for _, c := range text {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
