package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/plumbline/plumbline/pipeline/deadletter"
	"github.com/plumbline/plumbline/pipeline/store"
)

type dlqCommands struct {
	Ls      dlqLsCommand      `cmd:"" help:"List dead letters: records that were rejected, and why."`
	Show    dlqShowCommand    `cmd:"" help:"Show dead letters, with secrets redacted."`
	Replay  dlqReplayCommand  `cmd:"" help:"Publish the original bytes of dead letters again."`
	Resolve dlqResolveCommand `cmd:"" help:"Mark rejected records as handled. They stay stored."`
	Drop    dlqResolveCommand `cmd:"" hidden:"" help:"The earlier name of resolve."`
}

type dlqLsCommand struct {
	readerFlags `embed:""`
	Reason      string `help:"Only records that were rejected for this reason."`
	Agent       string `help:"Only records sent by this agent (taken from the token or NATS subject)."`
	All         bool   `help:"Also list letters that were resolved or replayed."`
	JSON        bool   `help:"Print one JSON object for each letter."`
}

// Help returns the examples.
func (*dlqLsCommand) Help() string {
	return examples(
		"plumbline dlq ls",
		"plumbline dlq ls --agent did:web:buyer.example --all --json",
	)
}

// Run lists the letters. An empty list is no error.
func (c *dlqLsCommand) Run(ctx context.Context, con *console) error {
	return c.read(ctx, func(s *store.Store) error {
		letters, err := s.MarkedLetters(ctx, "", false)
		if err != nil {
			return err
		}
		var views []*deadletter.View
		for i := range letters {
			l := &letters[i]
			if (c.All || !l.Handled()) && (c.Reason == "" || c.Reason == l.Reason) && (c.Agent == "" || c.Agent == l.AgentID) {
				views = append(views, deadletter.ViewOf(l))
			}
		}
		if c.JSON {
			return writeEach(con.out, views)
		}
		t := newTable(con.out)
		t.row("digest", "received", "stage", "reason", "agent", "state", "first fault")
		for _, v := range views {
			first := ""
			if len(v.Faults) > 0 {
				first = v.Faults[0].String()
			}
			t.row(v.Digest.String()[:12], v.Received, v.Stage, v.Reason, v.AgentID, v.State, first)
		}
		return t.Flush()
	})
}

type dlqShowCommand struct {
	readerFlags `embed:""`
	Digest      string `arg:"" help:"Digest of the letter's bytes, or its beginning."`
	Raw         string `type:"path" placeholder:"FILE" help:"Write the original bytes, including secrets, to a new file that only you can read."`
	JSON        bool   `help:"Print one JSON object for each letter."`
}

// Help returns the examples.
func (*dlqShowCommand) Help() string {
	return examples(
		"plumbline dlq show 3f2a91c0",
		"plumbline dlq show 3f2a91c0 --raw letter.json",
	)
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
		file, err := os.OpenFile(c.Raw, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return usageError{err}
		}
		_, err = file.Write(letters[0].Raw)
		return errors.Join(err, file.Close())
	})
}

func (c *dlqShowCommand) show(w io.Writer, l *store.MarkedLetter) error {
	v := deadletter.ContentOf(l)
	if c.JSON {
		return writeJSON(w, v)
	}
	lines := [][]any{
		{"digest", v.Digest.String()}, {"received", v.Received}, {"stage", v.Stage}, {"reason", v.Reason}, {"agent", v.AgentID},
		{"trace", v.TraceID}, {"subject", v.Subject}, {"sequence", v.Sequence}, {"state", v.State}, {"by", v.MarkedBy}, {"note", v.Note},
		{"bytes", v.Bytes}, {"redactions", v.Redactions},
	}
	for _, f := range v.Faults {
		lines = append(lines, []any{"fault", f.String()})
	}
	lines = append(lines, []any{"record", cmp.Or(v.Hidden, string(v.Record))})
	return writeRows(w, append(lines, nil))
}

// lettersOf returns the letters, with their bytes, of the one digest with this beginning.
func lettersOf(ctx context.Context, s *store.Store, beginning string) ([]store.MarkedLetter, error) {
	if n := len(beginning); n < leastDigits || n > 64 || strings.Trim(beginning, "0123456789abcdef") != "" {
		return nil, usagef("%q: want at least %d of the 64 lower-case hexadecimal digits of a digest", beginning, leastDigits)
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
			return nil, usagef("%s is the beginning of several digests: give more digits", beginning)
		}
	}
	return letters, nil
}

// leastDigits is how many digits make it unlikely that two digests have the same beginning.
const leastDigits = 8

// handleFlags name the database from which dead letters are read, and the ingest to which
// the handling is reported.
type handleFlags struct {
	readerFlags `embed:""`
	URL         string   `name:"url" placeholder:"URL" help:"Address of ingest. Default: that of the running up."`
	Token       string   `placeholder:"TOKEN" help:"Bearer token, if ingest requires one. Marking needs the scope dead-letters:write."`
	Digests     []string `arg:"" name:"digest" help:"Digests of letters, or their beginnings."`
	Note        string   `help:"Reason; it is stored with the mark."`
	JSON        bool     `help:"Print one JSON object for each letter."`
}

// each handles one letter of each digest.
func (f *handleFlags) each(ctx context.Context, con *console, do func(context.Context, deadletter.Ingest, *store.MarkedLetter, string) (*deadletter.Handled, error)) error {
	ingest, err := (&ingestFlags{machineFlags: f.machineFlags, URL: f.URL, Token: f.Token}).publisher(ctx)
	if err != nil {
		return err
	}
	return f.readLetters(ctx, func(s *store.Store) error {
		bad := false
		for _, digest := range f.Digests {
			letters, err := lettersOf(ctx, s, digest)
			if err != nil {
				return err
			}
			done, err := do(ctx, ingest, &letters[0], f.Note)
			if err != nil {
				return fmt.Errorf("letter %s: %w", letters[0].Digest, tokenHint(err))
			}
			bad = bad || done.Mark == ""
			if err := f.show(con.out, done); err != nil {
				return err
			}
		}
		return found(nil, !bad)
	})
}

func (f *handleFlags) show(w io.Writer, done *deadletter.Handled) error {
	if f.JSON {
		return writeJSON(w, done)
	}
	text := done.Mark
	switch {
	case done.Outcome != nil:
		text = done.Outcome.Status
		for i, fault := range done.Outcome.Faults {
			text += []string{": ", "; "}[min(i, 1)] + printable(fault.String())
		}
	case done.Message != "":
		text = "not replayed: " + printable(done.Message)
	}
	_, err := fmt.Fprintf(w, "%s  %s\n", done.Digest, text)
	return err
}

type dlqReplayCommand struct {
	handleFlags `embed:""`
}

// Help returns the examples.
func (*dlqReplayCommand) Help() string {
	return examples("plumbline dlq replay 3f2a91c0 --note 'the card is registered now'")
}

// Run sends the original bytes again. It marks the accepted ones as replayed; the
// others stay open.
func (c *dlqReplayCommand) Run(ctx context.Context, con *console) error {
	return c.each(ctx, con, deadletter.Replay)
}

type dlqResolveCommand struct {
	handleFlags `embed:""`
}

// Help returns the examples.
func (*dlqResolveCommand) Help() string {
	return examples("plumbline dlq resolve 3f2a91c0 --note 'the publisher sent it again'")
}

// Run marks the letters. They remain stored, and dlq ls --all lists them.
func (c *dlqResolveCommand) Run(ctx context.Context, con *console) error {
	return c.each(ctx, con, deadletter.Resolve)
}
