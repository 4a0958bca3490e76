package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/plumbline/plumbline/cmd/plumbline/publisher"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
)

// handleFlags name the database from which dead letters are read, and the ingest to which
// the handling is reported.
type handleFlags struct {
	readerFlags `embed:""`
	URL         string   `name:"url" placeholder:"URL" help:"Ingest's address instead of that of a running up."`
	Token       string   `placeholder:"TOKEN" help:"Bearer token, where ingest asks for one; marking needs scope dead-letters:write."`
	Digests     []string `arg:"" name:"digest" help:"Digests of letters, or how they begin."`
	Note        string   `help:"Why; it is kept with the mark."`
	JSON        bool     `help:"Print one JSON object a letter."`
}

func (f *handleFlags) client(ctx context.Context) (*publisher.Client, error) {
	return (&ingestFlags{machineFlags: f.machineFlags, URL: f.URL, Token: f.Token}).client(ctx)
}

// each handles one letter of each digest, and marks the result.
func (f *handleFlags) each(ctx context.Context, con *console, do func(*publisher.Client, *store.MarkedLetter) (*handledLetter, error)) error {
	client, err := f.client(ctx)
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
			done, err := do(client, &letters[0])
			if err == nil && done.Mark != "" {
				err = client.MarkLetters(ctx, done.Mark, f.Note, []string{letters[0].Digest.String()})
			}
			if err != nil {
				return fmt.Errorf("letter %s: %w", letters[0].Digest, err)
			}
			bad = bad || done.Mark == ""
			if err := f.tell(con.out, done); err != nil {
				return err
			}
		}
		if bad {
			return errFoundBad
		}
		return nil
	})
}

// handledLetter is the result for a letter.
type handledLetter struct {
	Digest string `json:"digest"`
	Mark   string `json:"mark,omitempty"` // empty: the letter stays open

	Outcome *publisher.Outcome `json:"outcome,omitempty"` // of a replay
	Message string             `json:"message,omitempty"` // why it was not replayed
}

func (f *handleFlags) tell(w io.Writer, done *handledLetter) error {
	if f.JSON {
		return writeJSON(w, done)
	}
	text := done.Mark
	switch {
	case done.Outcome != nil:
		text = done.Outcome.Status
		for _, fault := range done.Outcome.Faults {
			text += fmt.Sprintf(": %s %s", printable(fault.Pointer), printable(fault.Message))
		}
	case done.Message != "":
		text = "not replayed: " + done.Message
	}
	_, err := fmt.Fprintf(w, "%s  %s\n", done.Digest, text)
	return err
}

type dlqReplayCommand struct {
	handleFlags `embed:""`
}

// Run sends the original bytes again. It marks the accepted ones as replayed; the
// others stay open.
func (c *dlqReplayCommand) Run(ctx context.Context, con *console) error {
	return c.each(ctx, con, func(client *publisher.Client, l *store.MarkedLetter) (*handledLetter, error) {
		done := &handledLetter{Digest: l.Digest.String()}
		if !ofTrace(l.Subject) {
			done.Message = "it is no trace: it came on " + printable(l.Subject)
			return done, nil
		}
		outcome, err := client.SendAlone(ctx, l.Raw)
		var refused *publisher.Problem
		if errors.As(err, &refused) {
			done.Message = refused.Error()
			return done, nil
		}
		if err != nil {
			return nil, err
		}
		done.Outcome = &outcome
		if outcome.Status == publisher.Accepted || outcome.Status == publisher.Duplicate {
			done.Mark = wire.MarkReplayed
		}
		return done, nil
	})
}

// ofTrace reports whether the letter with this subject was sent as a trace. A dead letter of
// ingest was never on a stream and has no subject.
func ofTrace(stored string) bool {
	_, _, err := subject.ParseStored(stored)
	return stored == "" || err == nil
}

type dlqDropCommand struct {
	handleFlags `embed:""`
}

// Run marks the letters. They remain stored, and dlq ls --all lists them.
func (c *dlqDropCommand) Run(ctx context.Context, con *console) error {
	return c.each(ctx, con, func(_ *publisher.Client, l *store.MarkedLetter) (*handledLetter, error) {
		return &handledLetter{Digest: l.Digest.String(), Mark: wire.MarkDropped}, nil
	})
}

// writePrivate writes a new file that only its owner can read. An existing file is an error.
func writePrivate(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return usageError{err}
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}
