package verifier

import (
	"context"
	"sync"
	"time"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/message"
	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/messages"
	"github.com/plumbline/plumbline/pipeline/run"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// MessageRows is where decisions about messages become rows (store.Store).
type MessageRows interface {
	InsertMessages(ctx context.Context, records []store.MessageRecord) error
}

// LedgerEvents is where events for the operator's ledger go (stream.Client).
type LedgerEvents interface {
	AppendLedger(ctx context.Context, events ...ledger.Event) error
}

// messageRecords carries the records of bucket messages into ClickHouse, and their
// hashes into the operator's ledger: an entry a second, if there was one.
type messageRecords struct {
	env         *run.Env
	rows        MessageRows
	ledger      LedgerEvents
	policies    *messages.Policies
	retainUntil func(agentID string, received time.Time) time.Time // cards.Registry
	unjudged    sync.Once                                          // the warning that nothing is held against the records
}

// A ledger entry lists the hashes of one fetch; the ledger has room for many more.
const (
	recordsWait = time.Second
	recordsRows = 4000
)

func (r *messageRecords) carrier(source Source) *carrier {
	return &carrier{env: r.env, what: "decisions about messages", source: source, store: r.store, wait: recordsWait, rows: recordsRows}
}

func (r *messageRecords) store(ctx context.Context, inbox []stream.Message) error {
	var records []store.MessageRecord
	for i := range inbox {
		m := &inbox[i]
		key := stream.BucketKey(stream.Messages, m)
		if key == "" || !messages.IsRecord(key) {
			continue
		}
		record, err := messages.ReadRecord(m.Data)
		if err != nil {
			r.env.Log.Error("a record of a message is not one, passed over", "key", key, "error", err)
			continue
		}
		r.warnUnjudged(record)
		records = append(records, store.MessageRecord{
			Record: record, Raw: m.Data, Received: m.Received, RetainUntil: r.retainUntil(record.AgentID, m.Received),
		})
	}
	if len(records) == 0 {
		return nil
	}
	err := r.env.Retry.Do(ctx, "insert decisions about messages", func() error { return r.rows.InsertMessages(ctx, records) })
	if err != nil {
		return err
	}
	return r.enter(ctx, records)
}

// enter appends the hashes to the operator's ledger. The same again, after a
// crash, may list a hash twice.
func (r *messageRecords) enter(ctx context.Context, records []store.MessageRecord) error {
	hashes := make([]schema.Digest, len(records))
	for i := range records {
		hashes[i] = records[i].Digest()
	}
	event, err := events.Decisions{SHA256: hashes}.Event()
	if err != nil {
		return err
	}
	return r.env.Retry.Do(ctx, "append decisions to the ledger", func() error { return r.ledger.AppendLedger(ctx, event) })
}

// warnUnjudged tells the operator, once, of policies that this verifier was not
// given.
func (r *messageRecords) warnUnjudged(record *message.Record) {
	if r.policies.Given() || record.Mode == message.Off {
		return
	}
	r.unjudged.Do(func() {
		r.env.Log.Warn("messages are held to policies that this verifier does not have: what traces do with them is not judged",
			"agent", record.AgentID, "hint", "give message_policies_file to the verifier as well")
	})
}
