package sink

import (
	"context"
	"sync"
	"time"

	"github.com/plumbline/plumbline/message"
	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/messages"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// MessageRows is where decisions about messages become rows (store.Store).
type MessageRows interface {
	InsertMessages(ctx context.Context, records []store.MessageRecord) error
}

// Messages brings the records of bucket messages into ClickHouse, and their hashes into the
// operator's ledger: an entry a second, where there was a record. After a crash a hash may be
// listed twice. It passes over what is no record.
type Messages struct {
	Env         *service.Env
	Rows        MessageRows
	Ledger      LedgerEvents
	Policies    *messages.Policies
	RetainUntil func(agentID string, received time.Time) time.Time // cards.Registry

	unjudged sync.Once // the warning that this process has no policies
}

// A ledger entry lists the hashes of one fetch; the ledger has room for many more.
const (
	recordsWait = time.Second
	recordsRows = 4000
)

// Run stores what source brings until ctx ends.
func (r *Messages) Run(ctx context.Context, source Source) error {
	l := loop{env: r.Env, what: "decisions about messages", source: source, store: r.store, wait: recordsWait, rows: recordsRows}
	return l.run(ctx)
}

func (r *Messages) store(ctx context.Context, inbox []stream.Message) error {
	var records []store.MessageRecord
	for i := range inbox {
		m := &inbox[i]
		key := stream.BucketKey(stream.Messages, m)
		if key == "" || !messages.IsRecord(key) {
			continue
		}
		record, err := messages.ReadRecord(m.Data)
		if err != nil {
			r.Env.Log.Error("a record of bucket messages cannot be read: it is passed over", "key", key, "error", err)
			continue
		}
		r.warnUnjudged(record)
		records = append(records, store.MessageRecord{
			Record: record, Raw: m.Data, Received: m.Received, RetainUntil: r.RetainUntil(record.AgentID, m.Received),
		})
	}
	if len(records) == 0 {
		return nil
	}
	err := r.Env.Retry.Do(ctx, "insert decisions about messages", func() error { return r.Rows.InsertMessages(ctx, records) })
	if err != nil {
		return err
	}
	return r.enter(ctx, records)
}

// enter appends the hashes to the operator's ledger.
func (r *Messages) enter(ctx context.Context, records []store.MessageRecord) error {
	hashes := make([]schema.Digest, len(records))
	for i := range records {
		hashes[i] = records[i].Digest()
	}
	event, err := events.Decisions{SHA256: hashes}.Event()
	if err != nil {
		return err
	}
	return r.Env.Retry.Do(ctx, "append decisions to the ledger", func() error { return r.Ledger.AppendLedger(ctx, event) })
}

// warnUnjudged warns once, where messages are held to policies that this process was not
// given.
func (r *Messages) warnUnjudged(record *message.Record) {
	if r.Policies.Given() || record.Mode == message.Off {
		return
	}
	r.unjudged.Do(func() {
		r.Env.Log.Warn("messages are held to policies that this verifier does not have: what traces do with them is not judged",
			"agent", record.AgentID, "hint", "give message_policies_file to the verifier as well")
	})
}
