package demo

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// published is what this run has published, with the answers.
type published struct {
	lines    int
	traces   map[schema.Digest]string  // what a decoder admits → trace id
	ids      map[string]bool           // of these traces
	sessions map[store.SessionKey]bool // → whether the last line says that the session ends
	refused  map[schema.Digest]refusal // lines that no decoder admits
	repeated map[string]bool           // ids of traces answered as duplicates
	wrong    []string                  // answers that contradict the decoder
}

// refusal is a line that no decoder admits.
type refusal struct {
	line   int    // index among the lines
	reason string // of schema.Refusal
}

// requestLines is how many lines are sent in one call.
const requestLines = 2000

// publish sends the script's lines in their order, and calls progress with the number
// of lines sent.
func publish(ctx context.Context, publisher *client.Publisher, s *script, progress func(lines int)) (*published, error) {
	p := &published{
		traces: map[schema.Digest]string{}, ids: map[string]bool{},
		sessions: map[store.SessionKey]bool{}, refused: map[schema.Digest]refusal{}, repeated: map[string]bool{},
	}
	var lines [][]byte
	send := func() error {
		outcomes, err := publisher.Publish(ctx, lines)
		if err != nil {
			return err
		}
		for i, line := range lines {
			p.note(line, &outcomes[i])
		}
		lines = lines[:0]
		progress(p.lines)
		return nil
	}
	for line, err := range s.lines {
		if err != nil {
			return nil, err
		}
		if lines = append(lines, line); len(lines) == requestLines {
			if err := send(); err != nil {
				return nil, err
			}
		}
	}
	return p, send()
}

// note records one line: its decoder's result, and whether the answer agrees.
func (p *published) note(line []byte, answer *client.Outcome) {
	p.lines++
	trace, err := schema.Admit("", line)
	want := client.Accepted
	if err != nil {
		reason := err.Error()
		if refused := new(schema.Refusal); errors.As(err, &refused) {
			reason = refused.Reason
		}
		p.refused[schema.DigestOf(line)] = refusal{p.lines - 1, reason}
		want = client.Refused
	} else {
		p.traces[trace.Digest] = trace.TraceID
		p.ids[trace.TraceID] = true
		p.sessions[store.SessionKey{AgentID: trace.AgentID, SessionID: schema.SessionID(trace)}] = trace.Context.SessionEnd
		if answer.Status == client.Duplicate {
			p.repeated[trace.TraceID] = true
			return
		}
	}
	if answer.Status != want {
		p.wrong = append(p.wrong, fmt.Sprintf("line %d (%s) was answered %q, want %q", p.lines, answer.TraceID, answer.Status, want))
	}
}

// endSessions requests sealing of the sessions whose traces do not say that
// they have ended.
func (p *published) endSessions(ctx context.Context, publisher *client.Publisher) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for key, ended := range p.sessions {
		if !ended {
			group.Go(func() error { return publisher.EndSession(ctx, key.AgentID, key.SessionID) })
		}
	}
	return group.Wait()
}
