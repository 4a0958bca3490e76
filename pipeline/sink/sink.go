// Package sink brings the streams of rarer messages into ClickHouse and into the operator's
// ledger: dead letters, the results of handshakes and their tasks, decisions about messages, and
// alerts. The verifier hosts these loops.
//
// It owns what becomes of each of these messages, and when one is acknowledged. It does not own
// the forms of the messages (pipeline/wire, handshake, messages), the tables (pipeline/store), or
// the contents of an entry of the ledger (pipeline/events).
//
// Invariants: a message is acknowledged when its row, its entry in the ledger or its dead letter
// is durable. Each of these is idempotent, so a crash at any step loses nothing and doubles
// nothing. A message that cannot be read does not keep the other messages from their rows.
package sink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/message"
	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/handshake"
	"github.com/plumbline/plumbline/pipeline/messages"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// stage is the service that hosts the sinks: dead letters name it.
const stage = "verifier"

// Source is where messages come from (stream.Consumer).
type Source interface {
	Fetch(ctx context.Context, into []stream.Message, maxMessages, maxBytes int, wait time.Duration) ([]stream.Message, error)
	StreamCreated() time.Time
}

// LedgerEvents is where events for the operator's ledger go (stream.Client).
type LedgerEvents interface {
	AppendLedger(ctx context.Context, events ...ledger.Event) error
}

// The limits of one fetch, for a sink that has no reason for others. The bytes are the same for all.
const (
	usualRows = 1000
	usualWait = 500 * time.Millisecond
	mostBytes = 16 << 20
)

// run fetches at most `most` messages at a time, stores and acknowledges them, until ctx ends. It
// finishes the messages that it has fetched. what names them in logs and metrics. store retries by
// itself what can succeed.
func run(ctx context.Context, env *service.Env, what string, source Source, most int, wait time.Duration, store func(ctx context.Context, inbox []stream.Message) error) error {
	work, stop := env.Drain(ctx)
	defer stop()
	var inbox []stream.Message
	for ctx.Err() == nil {
		err := env.Retry.Do(ctx, "fetch "+what, func() (err error) {
			inbox, err = source.Fetch(ctx, inbox[:0], most, mostBytes, wait)
			if len(inbox) > 0 {
				return nil
			}
			return err
		})
		if err != nil && ctx.Err() == nil {
			return err
		}
		if len(inbox) == 0 {
			continue
		}
		// After a crash here, or before the ack, the messages are redelivered. They are stored again,
		// which changes nothing.
		if err := store(work, inbox); err != nil {
			return err
		}
		if err := env.Retry.Do(work, "acknowledge "+what, func() error { return stream.Acknowledge(work, inbox) }); err != nil {
			return err
		}
	}
	return nil
}

// DeadLetters brings stream DEADLETTER into ClickHouse, where analysts find what was refused. It
// skips a message that is neither a dead letter nor a mark on one.
type DeadLetters struct {
	Env        *service.Env
	Rows       *store.Store
	CountEvery time.Duration // how often the open letters are counted; a minute where 0
}

func (d *DeadLetters) Run(ctx context.Context, source Source) error {
	return service.Group(ctx, d.countOpen, func(ctx context.Context) error {
		return run(ctx, d.Env, "dead letters", source, usualRows, usualWait, d.store)
	})
}

// countOpen updates gauge plumbline_dead_letters_open until ctx ends. While the letters cannot be
// counted, the gauge has no value.
func (d *DeadLetters) countOpen(ctx context.Context) error {
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "plumbline_dead_letters_open", Help: "Dead letters that are neither resolved nor replayed.",
	}, nil)
	if err := d.Env.Metrics.Register(gauge); err != nil {
		return fmt.Errorf("metric of dead letters: %w", err)
	}
	tick := time.NewTicker(cmp.Or(d.CountEvery, time.Minute))
	defer tick.Stop()
	for {
		open, err := d.Rows.OpenLetters(ctx)
		if err != nil {
			gauge.Reset() // readiness says why
		} else {
			gauge.WithLabelValues().Set(float64(open))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (d *DeadLetters) store(ctx context.Context, inbox []stream.Message) error {
	letters := make([]store.DeadLetter, 0, len(inbox))
	var marks []store.LetterMark
	for i := range inbox {
		if inbox[i].Subject == wire.MarkSubject {
			mark, err := wire.ParseMark(inbox[i].Data)
			if err != nil {
				d.skip(&inbox[i], err)
				continue
			}
			marks = append(marks, store.LetterMark{Digest: mark.Digest, MarkedAt: inbox[i].Received, Mark: mark.Mark, MarkedBy: mark.By, Note: mark.Note})
			continue
		}
		letter, err := wire.ParseDeadLetter(inbox[i].Subject, inbox[i].Header, inbox[i].Data)
		if err != nil {
			d.skip(&inbox[i], err)
			continue
		}
		letters = append(letters, LetterRow(&inbox[i], &letter))
	}
	err := d.Env.Retry.Do(ctx, "insert dead letters", func() error { return d.Rows.InsertDeadLetters(ctx, letters) })
	if err != nil || len(marks) == 0 {
		return err
	}
	return d.Env.Retry.Do(ctx, "insert marks on dead letters", func() error { return d.Rows.InsertLetterMarks(ctx, marks) })
}

func (d *DeadLetters) skip(m *stream.Message, err error) {
	d.Env.Log.Error("message of stream DEADLETTER is not a dead letter; skipped", "sequence", m.Sequence, "error", err)
}

// LetterRow returns the row of a dead letter that came as m.
func LetterRow(m *stream.Message, letter *wire.DeadLetter) store.DeadLetter {
	row := store.DeadLetter{
		Stage:          letter.Stage,
		OriginSequence: letter.Sequence,
		Received:       m.Received,
		Subject:        letter.Subject,
		AgentID:        letter.Agent,
		Reason:         letter.Reason,
		Raw:            letter.Data,
	}
	row.SetFaults(letter.Faults)
	return row
}

// Coherence brings stream COHERENCE into ClickHouse. A message that is not a record of a handshake
// or a task becomes a dead letter.
type Coherence struct {
	Env     *service.Env
	Rows    *store.Store
	Letters *stream.Client
	Cards   Cards
}

// Cards says how long data of an agent is kept (cards.Registry).
type Cards interface {
	Know(ctx context.Context, agentID string) error
	RetainUntil(agentID string, received time.Time) time.Time
}

// know makes the retention of data of the agents known.
func know(ctx context.Context, env *service.Env, cards Cards, agents ...string) error {
	return env.Retry.Do(ctx, "look up the cards of an agent", func() error {
		for _, agent := range agents {
			if err := cards.Know(ctx, agent); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *Coherence) Run(ctx context.Context, source Source) error {
	return run(ctx, c.Env, "results of handshakes", source, usualRows, usualWait, c.store)
}

func (c *Coherence) store(ctx context.Context, inbox []stream.Message) error {
	var results []store.CoherenceResult
	var tasks []store.TaskResult
	var dead []wire.DeadLetter
	for i := range inbox {
		m := &inbox[i]
		record, messages, err := read(m)
		if err == nil {
			if err := know(ctx, c.Env, c.Cards, record.Initiator, record.Responder); err != nil {
				return err
			}
		}
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
	initiator, responder := c.Cards.RetainUntil(record.Initiator, received), c.Cards.RetainUntil(record.Responder, received)
	if initiator.IsZero() || responder.IsZero() {
		return time.Time{}
	}
	if initiator.After(responder) {
		return initiator
	}
	return responder
}

// Messages brings the records of bucket messages into ClickHouse, and their hashes into the
// operator's ledger: at most one entry each second. After a crash a hash may be listed twice. It
// skips what is not a record.
type Messages struct {
	Env      *service.Env
	Rows     *store.Store
	Ledger   LedgerEvents
	Policies *messages.Policies
	Cards    Cards

	unjudged sync.Once // the warning that this process has no policies
}

// A ledger entry lists the hashes of one fetch. An entry has room for many more.
const (
	recordsWait = time.Second
	recordsRows = 4000
)

func (r *Messages) Run(ctx context.Context, source Source) error {
	return run(ctx, r.Env, "decisions about messages", source, recordsRows, recordsWait, r.store)
}

func (r *Messages) store(ctx context.Context, inbox []stream.Message) error {
	var records []store.MessageRecord
	var hashes []schema.Digest
	for i := range inbox {
		m := &inbox[i]
		key := stream.BucketKey(stream.Messages, m)
		if key == "" || !messages.IsRecord(key) {
			continue
		}
		record, err := messages.ReadRecord(m.Data)
		if err != nil {
			r.Env.Log.Error("record of bucket messages cannot be read; skipped", "key", key, "error", err)
			continue
		}
		if !r.Policies.Given() && record.Mode != message.Off {
			r.unjudged.Do(func() {
				r.Env.Log.Warn("messages are checked against policies that this verifier does not have; traces that cite them are not checked",
					"agent", record.AgentID, "hint", "give message_policies_file to the verifier as well")
			})
		}
		if err := know(ctx, r.Env, r.Cards, record.AgentID); err != nil {
			return err
		}
		stored := store.MessageRecord{Record: record, Raw: m.Data, Received: m.Received, RetainUntil: r.Cards.RetainUntil(record.AgentID, m.Received)}
		records, hashes = append(records, stored), append(hashes, stored.Digest())
	}
	if len(records) == 0 {
		return nil
	}
	err := r.Env.Retry.Do(ctx, "insert decisions about messages", func() error { return r.Rows.InsertMessages(ctx, records) })
	if err != nil {
		return err
	}
	event, err := events.Decisions{SHA256: hashes}.Event()
	if err != nil {
		return err
	}
	return r.Env.Retry.Do(ctx, "append decisions to the ledger", func() error { return r.Ledger.AppendLedger(ctx, event) })
}

// Findings appends the alerts of stream ALERTS to the operator's ledger, from every stage: at most
// one entry each second. An alert is in the stream before the message that raised it is
// acknowledged, and this consumer acknowledges it after the entry. So a crash leaves no alert out.
// After a crash the same alerts may be listed twice.
type Findings struct {
	Env    *service.Env
	Ledger LedgerEvents
}

// An entry of findingsRows alerts with the longest ids, every character escaped, is smaller than
// the limit of a ledger and of the broker (1 MiB).
const (
	findingsWait = time.Second
	findingsRows = 1000
	longestID    = 100
)

func (f *Findings) Run(ctx context.Context, source Source) error {
	return run(ctx, f.Env, "findings", source, findingsRows, findingsWait, func(ctx context.Context, inbox []stream.Message) error {
		found := events.Findings{Stream: source.StreamCreated(), Alerts: make([]events.Alert, len(inbox))}
		for i := range inbox {
			m := &inbox[i]
			found.Alerts[i] = events.Alert{Sequence: m.Sequence, SHA256: schema.DigestOf(m.Data)}
			if id := m.ID(); len(id) <= longestID { // a longer one is not ours: sequence and hash identify the alert
				found.Alerts[i].ID = id
			}
		}
		event, err := found.Event()
		if err != nil {
			return err
		}
		return f.Env.Retry.Do(ctx, "append findings to the ledger", func() error { return f.Ledger.AppendLedger(ctx, event) })
	})
}
