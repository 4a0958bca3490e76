package verifier

import (
	"context"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/pipeline/handshake"
	"github.com/plumbline/plumbline/pipeline/run"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// CoherenceRows is where the results of handshakes become rows (store.Store).
type CoherenceRows interface {
	InsertCoherenceResults(ctx context.Context, results []store.CoherenceResult) error
}

// coherenceResults carries stream COHERENCE into ClickHouse. A message that is no
// record of a handshake goes to the dead letters.
type coherenceResults struct {
	env     *run.Env
	rows    CoherenceRows
	letters interface {
		DeadLetters(ctx context.Context, letters []stream.DeadLetter) error
	}
	retainUntil func(agentID string, received time.Time) time.Time // cards.Registry
}

func (c *coherenceResults) carrier(source Source) *carrier {
	return &carrier{env: c.env, what: "results of handshakes", source: source, store: c.store}
}

func (c *coherenceResults) store(ctx context.Context, inbox []stream.Message) error {
	var results []store.CoherenceResult
	var dead []stream.DeadLetter
	for i := range inbox {
		result, err := c.row(&inbox[i])
		if err != nil {
			dead = append(dead, deadCoherence(&inbox[i], err))
			continue
		}
		results = append(results, result)
	}
	err := c.env.Retry.Do(ctx, "insert results of handshakes", func() error { return c.rows.InsertCoherenceResults(ctx, results) })
	if err != nil || len(dead) == 0 {
		return err
	}
	return c.env.Retry.Do(ctx, "publish dead letters", func() error { return c.letters.DeadLetters(ctx, dead) })
}

// row reads a record, and refuses one about another agent than its subject's.
func (c *coherenceResults) row(m *stream.Message) (row store.CoherenceResult, err error) {
	record, messages, err := handshake.ReadRecord(m.Data)
	if err != nil {
		return row, err
	}
	if want := subject.Coherence(record.Initiator); m.Subject != want {
		return row, fmt.Errorf("the record of a handshake of agent %q came on %s", record.Initiator, m.Subject)
	}
	return store.CoherenceResult{
		ID: record.ID(messages.Request), Transport: record.Transport, Initiator: record.Initiator, Responder: record.Responder,
		Received: m.Received, RetainUntil: c.retention(record, m.Received),
		Request: messages.Request, Check: messages.Check, Result: messages.Result,
	}, nil
}

// retention is the longer commitment of the two agents; the zero time is for
// ever.
func (c *coherenceResults) retention(record *handshake.Record, received time.Time) time.Time {
	initiator, responder := c.retainUntil(record.Initiator, received), c.retainUntil(record.Responder, received)
	if initiator.IsZero() || responder.IsZero() {
		return time.Time{}
	}
	if initiator.After(responder) {
		return initiator
	}
	return responder
}

func deadCoherence(m *stream.Message, err error) stream.DeadLetter {
	return stream.DeadLetter{
		Stage: stageName, Reason: schema.ReasonInvalidHandshake, Faults: []schema.Fault{{Message: err.Error()}},
		Subject: m.Subject, Sequence: m.Sequence, Data: m.Data,
	}
}
