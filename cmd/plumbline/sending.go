package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/plumbline/plumbline/cmd/plumbline/publisher"
	"github.com/plumbline/plumbline/schema"
)

// sending is a running send.
type sending struct {
	client  *publisher.Client
	con     *console
	json    bool
	pace    *pace
	watch   progress
	summary summary
	warned  warned
	why     string // the last reason for a pause

	seal     bool
	sessions map[sessionKey]bool
	decoder  schema.Decoder
	trace    schema.Trace
}

// sessionKey identifies a session.
type sessionKey struct{ agentID, sessionID string }

// A slice is sent in one request.
const (
	sliceLines = 1000
	sliceBytes = 8 << 20
)

// all sends everything that the command line names.
func (s *sending) all(ctx context.Context, c *sendCommand) error {
	s.watch = newProgress(s.con.errs, "sent")
	if c.Cards != "" {
		if err := s.cards(ctx, c.Cards); err != nil {
			return err
		}
	}
	for _, name := range c.Files {
		if err := s.file(ctx, name, c.FromLine); err != nil {
			return err
		}
	}
	if len(c.Files) > 0 && s.summary.Sent == 0 {
		return fmt.Errorf("%w: there is no line to send", errNothing)
	}
	return s.endSessions(ctx)
}

// file sends the lines of one file, in their order.
func (s *sending) file(ctx context.Context, name string, from int) error {
	in, err := openInput(ctx, name, s.con.in)
	if err != nil {
		return err
	}
	defer in.Close()
	lines := newLineReader(in)
	for {
		slice, err := lines.slice(from, s.pace.most(sliceLines), sliceBytes)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read %s after line %d: %w", nameOf(name), lines.number, err)
		}
		if len(slice) > 0 {
			if err := s.slice(ctx, name, slice); err != nil {
				return fmt.Errorf("%w\nGo on with: plumbline send %s --from-line %d (what is sent twice is stored once)", err, name, slice[0].number)
			}
		}
		if err != nil {
			return nil
		}
	}
}

// slice sends lines and processes the outcome of each.
func (s *sending) slice(ctx context.Context, name string, slice []line) error {
	if err := s.pace.wait(ctx, len(slice)); err != nil {
		return err
	}
	raw := make([][]byte, len(slice))
	for i := range slice {
		raw[i] = slice[i].text
	}
	outcomes, err := s.client.Send(ctx, raw)
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

func (s *sending) account(name string, l *line, o *publisher.Outcome) error {
	s.summary.Sent++
	switch o.Status {
	case publisher.Accepted:
		s.summary.Accepted++
	case publisher.Duplicate:
		s.summary.Duplicates++
	default:
		s.summary.Refused++
		if len(o.Faults) == 0 { // already shown with the first line of a value of several lines
			return nil
		}
		return s.refuse(&refusal{File: nameOf(name), Line: l.number, TraceID: o.TraceID, Status: o.Status, Faults: o.Faults})
	}
	if err := s.warn(name, l, o); err != nil {
		return err
	}
	return s.note(l)
}

// warn shows the warnings of a stored line: as JSON at once, as text at the end.
func (s *sending) warn(name string, l *line, o *publisher.Outcome) error {
	if len(o.Warnings) == 0 {
		return nil
	}
	s.summary.Warned++
	if !s.json {
		s.warned.add(nameOf(name), l.number, o.Warnings)
		return nil
	}
	s.watch.clear()
	return writeJSON(s.con.out, refusal{File: nameOf(name), Line: l.number, TraceID: o.TraceID, Status: o.Status, Faults: []schema.Fault{}, Warnings: o.Warnings})
}

// note records the session of a stored line.
func (s *sending) note(l *line) error {
	if !s.seal {
		return nil
	}
	if err := s.decoder.Admit(&s.trace, "", l.text); err != nil {
		return fmt.Errorf("read the session of a line that was accepted: %w", err)
	}
	key := sessionKey{s.trace.AgentID, schema.SessionID(&s.trace)}
	s.sessions[key] = true
	return nil
}

func (s *sending) endSessions(ctx context.Context) error {
	for key := range s.sessions {
		if err := s.client.EndSession(ctx, key.agentID, key.sessionID); err != nil {
			return err
		}
		s.summary.SessionsEnded++
	}
	return nil
}
