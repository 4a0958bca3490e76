package sink

import (
	"context"
	"time"

	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

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

// Run appends the messages of source until ctx ends.
func (f *Findings) Run(ctx context.Context, source Source) error {
	return run(ctx, f.Env, "findings", source, fetch{findingsRows, findingsWait}, func(ctx context.Context, inbox []stream.Message) error {
		found := events.Findings{Stream: source.StreamCreated(), Alerts: make([]events.Alert, len(inbox))}
		for i := range inbox {
			m := &inbox[i]
			found.Alerts[i] = events.Alert{Sequence: m.Sequence, ID: idOf(m), SHA256: schema.DigestOf(m.Data)}
		}
		event, err := found.Event()
		if err != nil {
			return err
		}
		return f.Env.Retry.Do(ctx, "append findings to the ledger", func() error { return f.Ledger.AppendLedger(ctx, event) })
	})
}

// idOf returns an alert's id. It leaves out an id that is longer than any of ours: sequence and
// hash identify the alert.
func idOf(m *stream.Message) string {
	if id := m.ID(); len(id) <= longestID {
		return id
	}
	return ""
}
