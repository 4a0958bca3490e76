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

// MessageRows stores decisions about messages (store.Store).
type MessageRows interface {
	InsertMessages(ctx context.Context, records []store.MessageRecord) error
}

// Messages brings the records of bucket messages into ClickHouse, and their hashes into the
// operator's ledger: at most one entry each second. After a crash a hash may be listed twice. It
// skips what is not a record.
type Messages struct {
	Env         *service.Env
	Rows        MessageRows
	Ledger      LedgerEvents
	Policies    *messages.Policies
	RetainUntil func(agentID string, received time.Time) time.Time // cards.Registry

	unjudged sync.Once // the warning that this process has no policies
}

// A ledger entry lists the hashes of one fetch. An entry has room for many more.
const (
	recordsWait = time.Second
	recordsRows = 4000
)

// Run stores the messages of source until ctx ends.
func (r *Messages) Run(ctx context.Context, source Source) error {
	return run(ctx, r.Env, "decisions about messages", source, fetch{recordsRows, recordsWait}, r.store)
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
		r.warnUnjudged(record)
		stored := store.MessageRecord{Record: record, Raw: m.Data, Received: m.Received, RetainUntil: r.RetainUntil(record.AgentID, m.Received)}
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

// warnUnjudged warns once if messages are checked against policies that this process does not
// have.
func (r *Messages) warnUnjudged(record *message.Record) {
	if r.Policies.Given() || record.Mode == message.Off {
		return
	}
	r.unjudged.Do(func() {
		r.Env.Log.Warn("messages are checked against policies that this verifier does not have; traces that cite them are not checked",
			"agent", record.AgentID, "hint", "give message_policies_file to the verifier as well")
	})
}
