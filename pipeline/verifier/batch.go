package verifier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// batch is what one commit makes durable: messages and all results of judging them. A batch is
// reused after its commit.
type batch struct {
	messages []stream.Message
	bytes    int       // total size of the messages
	since    time.Time // when the first one joined
	first    bool      // of its term
	behind   bool      // the stream has more (see verifier)
	rows     *store.TraceBatch
	rowOf    []int // the index of each row's message
	inserted int   // rows that the database took, once insert has succeeded
	receipts [subject.Partitions][]schema.Receipt
	alerts   []wire.Alert
	dead     []wire.DeadLetter
	unknown  map[string]bool // ids of cards that were not registered
	open     []openRow
	settled  int // of open

	revocations int // how many revocations were known before the first of its traces was judged
}

func (b *batch) reset() {
	clear(b.messages)
	b.messages, b.bytes, b.rowOf, b.inserted, b.behind = b.messages[:0], 0, b.rowOf[:0], 0, false
	b.rows.Reset()
	for p := range b.receipts {
		clear(b.receipts[p])
		b.receipts[p] = b.receipts[p][:0]
	}
	b.alerts, b.dead = b.alerts[:0], b.dead[:0]
	clear(b.unknown)
	clear(b.open)
	b.open, b.settled = b.open[:0], 0
}

// takes returns how many of the messages, at most so many, the batch has room for: at least one, if there is one and the
// batch is not full.
func (b *batch) takes(cfg *Config, messages []stream.Message, most int) (n int) {
	messages = messages[:min(len(messages), most, cfg.BatchRows-len(b.messages))]
	for bytes := b.bytes; n < len(messages) && bytes < cfg.BatchBytes; n++ {
		bytes += len(messages[n].Data)
	}
	return n
}

// take adds a message. Results that are added next belong to the message that was taken last.
func (b *batch) take(m stream.Message, now time.Time) {
	if len(b.messages) == 0 {
		b.since = now
	}
	b.messages = append(b.messages, m)
	b.bytes += len(m.Data)
}

// add adds a message and what judging it gave.
func (b *batch) add(m stream.Message, j *judgement, now time.Time) (err error) {
	b.take(m, now)
	if j.refusal != nil {
		b.refuse(&m, j.refusal)
		return nil
	}
	b.addRow(&j.trace, &j.verdict, j.meta)
	b.addReceipt(&j.trace, j.meta)
	if j.verdict.Status == schema.StatusCardUnknown {
		b.unknown[strings.Clone(j.verdict.CardID)] = true
	}
	if j.open(&m) {
		b.leaveOpen(j)
		return nil
	}
	b.alerts, err = appendAlerts(b.alerts, &j.verdict)
	return err
}

func (b *batch) addRow(t *schema.Trace, v *schema.Verdict, meta store.Meta) {
	b.rows.Add(t, meta, v)
	b.rowOf = append(b.rowOf, len(b.messages)-1)
}

func (b *batch) addReceipt(t *schema.Trace, meta store.Meta) {
	b.receipts[meta.Partition] = append(b.receipts[meta.Partition], schema.Receipt{
		AgentID:   t.AgentID,
		SessionID: meta.SessionID,
		Stream:    meta.StreamCreated.UnixNano(),
		Sequence:  meta.Sequence,
		Digest:    t.Digest,
		EventTime: t.Timestamp,
		Bytes:     len(t.Raw),
		End:       t.Context.SessionEnd,
	})
}

// appendAlerts appends the alerts of a verdict: one for its violations and one for its findings,
// each with the verdict as JSON.
func appendAlerts(alerts []wire.Alert, v *schema.Verdict) ([]wire.Alert, error) {
	if len(v.Violations) == 0 && len(v.Findings) == 0 {
		return alerts, nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return alerts, fmt.Errorf("encode the verdict on %s: %w", v.TraceID, err)
	}
	raise := func(kind subject.AlertKind) {
		id := fmt.Sprintf("%s.%s", kind, store.VerdictID(&v.Metadata))
		alerts = append(alerts, wire.Alert{Kind: kind, Agent: v.AgentID, ID: id, Data: data})
	}
	if len(v.Violations) > 0 {
		raise(subject.AlertViolation)
	}
	if len(v.Findings) > 0 {
		raise(subject.AlertFinding)
	}
	return alerts, nil
}

// refuse adds the dead letter of a message that is not a valid trace. A request to end a session
// has none: drift processes it.
func (b *batch) refuse(m *stream.Message, refusal *schema.Refusal) {
	if _, requested := wire.EndOf(m.Agent, m.Data); !requested {
		b.addLetter(m, refusal)
	}
}

// addLetter adds the dead letter of a message that can never be stored.
func (b *batch) addLetter(m *stream.Message, refusal *schema.Refusal) {
	b.dead = append(b.dead, wire.DeadLetter{
		Stage:    stageName,
		Reason:   refusal.Reason,
		Faults:   refusal.Faults,
		Agent:    m.Agent,
		Subject:  m.Subject,
		Sequence: m.Sequence,
		Data:     wire.Kept(m.Data),
	})
}

// insert stores the rows. Rows that the database will never accept become dead letters, and their
// receipts are removed, so no session waits for them.
func (b *batch) insert(ctx context.Context, rows Rows) error {
	if b.rows.Len() == 0 {
		return nil
	}
	err := rows.InsertTraces(ctx, b.rows)
	if err == nil {
		b.inserted = b.rows.Stored()
	}
	bad, ok := errors.AsType[*store.BatchError](err)
	if !ok {
		return err
	}
	b.inserted = b.rows.Stored() - len(bad.Rows)
	gone := make(map[uint64]bool, len(bad.Rows))
	for _, row := range bad.Rows {
		m := &b.messages[b.rowOf[row.Index]]
		gone[m.Sequence] = true
		b.addLetter(m, &schema.Refusal{Reason: reasonUnstorable, Faults: []schema.Fault{{Message: row.Err.Error()}}})
	}
	for p := range b.receipts {
		b.receipts[p] = slices.DeleteFunc(b.receipts[p], func(r schema.Receipt) bool { return gone[r.Sequence] })
	}
	return nil
}

// reasonUnstorable is the dead-letter reason of a row that ClickHouse refuses.
const reasonUnstorable = "unstorable"

func (b *batch) publishDead(ctx context.Context, outlet Outlet) error {
	for _, letter := range b.dead {
		if err := outlet.DeadLetter(ctx, letter); err != nil {
			return err
		}
	}
	return nil
}
