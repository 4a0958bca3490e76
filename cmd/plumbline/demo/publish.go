package demo

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/cmd/plumbline/publisher"
	"github.com/plumbline/plumbline/fleet"
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

func newPublished() *published {
	return &published{
		traces: map[schema.Digest]string{}, ids: map[string]bool{},
		sessions: map[store.SessionKey]bool{}, refused: map[schema.Digest]refusal{}, repeated: map[string]bool{},
	}
}

// A request carries up to requestLines lines, fewer where they are large.
const (
	requestLines = 2000
	requestBytes = 8 << 20
)

// atOnce is how many requests about cards and sessions are made concurrently.
const atOnce = 8

// register registers the script's cards, an agent's older card before its newer one.
func register(ctx context.Context, client *publisher.Client, cards []card) error {
	for _, c := range cards {
		if _, err := client.PutCard(ctx, c.id, c.raw); err != nil {
			return err
		}
	}
	return nil
}

// revoke revokes the cards whose revocation the fleet plants. A card that an earlier run
// on the same data revoked stays revoked.
func revoke(ctx context.Context, client *publisher.Client, truth *fleet.Planted) error {
	if truth == nil {
		return nil
	}
	for _, id := range truth.Revoked {
		if _, _, err := client.Revoke(ctx, id, "the demo withdraws this card"); err != nil {
			return err
		}
	}
	return nil
}

// publish sends the script's lines in their order, and calls progress with the number
// of lines sent.
func publish(ctx context.Context, client *publisher.Client, s *script, progress func(lines int)) (*published, error) {
	p := newPublished()
	var chunk [][]byte
	size := 0
	send := func() error {
		err := p.send(ctx, client, chunk)
		chunk, size = chunk[:0], 0
		progress(p.lines)
		return err
	}
	for line, err := range s.lines {
		if err != nil {
			return nil, err
		}
		if len(chunk) == requestLines || size+len(line) > requestBytes {
			if err := send(); err != nil {
				return nil, err
			}
		}
		chunk, size = append(chunk, line), size+len(line)
	}
	return p, send()
}

// send sends lines and records their outcomes.
func (p *published) send(ctx context.Context, client *publisher.Client, lines [][]byte) error {
	if len(lines) == 0 {
		return nil
	}
	outcomes, err := client.Send(ctx, lines)
	if err != nil {
		return err
	}
	for i, line := range lines {
		p.note(line, &outcomes[i])
	}
	return nil
}

// note records one line: its decoder's result, and whether the answer agrees.
func (p *published) note(line []byte, answer *publisher.Outcome) {
	p.lines++
	trace, err := schema.Admit("", line)
	if err != nil {
		p.refused[schema.DigestOf(line)] = refusal{p.lines - 1, reasonOf(err)}
		p.expect(answer, publisher.Refused)
		return
	}
	p.traces[trace.Digest] = trace.TraceID
	p.ids[trace.TraceID] = true
	p.sessions[store.SessionKey{AgentID: trace.AgentID, SessionID: schema.SessionID(trace)}] = trace.Context.SessionEnd
	if answer.Status == publisher.Duplicate {
		p.repeated[trace.TraceID] = true
		return
	}
	p.expect(answer, publisher.Accepted)
}

func (p *published) expect(answer *publisher.Outcome, status string) {
	if answer.Status != status {
		p.wrong = append(p.wrong, fmt.Sprintf("line %d (%s) was answered %q, want %q", p.lines, answer.TraceID, answer.Status, status))
	}
}

func reasonOf(err error) string {
	var refusal *schema.Refusal
	if errors.As(err, &refusal) {
		return refusal.Reason
	}
	return err.Error()
}

// endSessions requests sealing of the sessions whose traces do not say that
// they have ended.
func (p *published) endSessions(ctx context.Context, client *publisher.Client) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for key, ended := range p.sessions {
		if !ended {
			group.Go(func() error { return client.EndSession(ctx, key.AgentID, key.SessionID) })
		}
	}
	return group.Wait()
}
