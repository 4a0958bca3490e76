package sink

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/pipeline/handshake"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// CoherenceRows stores the results of handshakes, and of the tasks that follow them (store.Store).
type CoherenceRows interface {
	InsertCoherenceResults(ctx context.Context, results []store.CoherenceResult) error
	InsertTaskResults(ctx context.Context, results []store.TaskResult) error
}

// Coherence brings stream COHERENCE into ClickHouse. A message that is not a record of a handshake
// or a task becomes a dead letter.
type Coherence struct {
	Env     *service.Env
	Rows    CoherenceRows
	Letters interface {
		DeadLetters(ctx context.Context, letters []wire.DeadLetter) error
	}
	RetainUntil func(agentID string, received time.Time) time.Time // cards.Registry
}

// Run stores the messages of source until ctx ends.
func (c *Coherence) Run(ctx context.Context, source Source) error {
	return run(ctx, c.Env, "results of handshakes", source, usual, c.store)
}

func (c *Coherence) store(ctx context.Context, inbox []stream.Message) error {
	var results []store.CoherenceResult
	var tasks []store.TaskResult
	var dead []wire.DeadLetter
	for i := range inbox {
		m := &inbox[i]
		record, messages, err := read(m)
		switch {
		case err != nil:
			dead = append(dead, wire.DeadLetter{
				Stage: stage, Reason: schema.ReasonInvalidHandshake, Faults: []schema.Fault{{Message: err.Error()}},
				Subject: m.Subject, Sequence: m.Sequence, Data: m.Data,
			})
		case messages.TaskResult != nil:
			tasks = append(tasks, store.TaskResult{
				Digest: messages.TaskDigest, Transport: record.Transport, Initiator: record.Initiator, Responder: record.Responder,
				Received: m.Received, RetainUntil: c.retention(record, m.Received), Message: messages.TaskResult,
			})
		default:
			results = append(results, store.CoherenceResult{
				ID: record.ID(messages), Transport: record.Transport, Initiator: record.Initiator, Responder: record.Responder,
				Received: m.Received, RetainUntil: c.retention(record, m.Received),
				Request: messages.Request, Check: messages.Check, Result: messages.Result,
			})
		}
	}
	err := c.Env.Retry.Do(ctx, "insert results of handshakes", func() error {
		return errors.Join(c.Rows.InsertCoherenceResults(ctx, results), c.Rows.InsertTaskResults(ctx, tasks))
	})
	if err != nil || len(dead) == 0 {
		return err
	}
	return c.Env.Retry.Do(ctx, "publish dead letters", func() error { return c.Letters.DeadLetters(ctx, dead) })
}

// read reads a record, and refuses one about another agent than its subject's.
func read(m *stream.Message) (*handshake.Record, *handshake.Messages, error) {
	record, messages, err := handshake.ReadRecord(m.Data)
	if err != nil {
		return nil, nil, err
	}
	if want := subject.Coherence(record.Initiator); m.Subject != want {
		return nil, nil, fmt.Errorf("handshake record of agent %q was published on subject %s, want %s", record.Initiator, m.Subject, want)
	}
	return record, messages, nil
}

// retention returns until when the record is kept: the longer commitment of the two agents. The
// zero time means forever.
func (c *Coherence) retention(record *handshake.Record, received time.Time) time.Time {
	initiator, responder := c.RetainUntil(record.Initiator, received), c.RetainUntil(record.Responder, received)
	if initiator.IsZero() || responder.IsZero() {
		return time.Time{}
	}
	if initiator.After(responder) {
		return initiator
	}
	return responder
}
