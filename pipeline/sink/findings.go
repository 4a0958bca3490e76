package sink

import (
	"context"
	"time"

	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// Findings enters the alerts of stream ALERTS into the operator's ledger, whoever raised
// them: an entry a second, where there was an alert. An alert is in the stream before the
// message that raised it is acknowledged, and this consumer acknowledges it after the entry.
// So a crash leaves no alert out. After a crash the same alerts may be listed twice.
type Findings struct {
	Env    *service.Env
	Ledger LedgerEvents
}

// An entry of findingsRows alerts with the longest ids, all of it escaped, is smaller than
// what a ledger and the broker take (1 MiB).
const (
	findingsWait = time.Second
	findingsRows = 1000
	longestID    = 100
)

// Run enters what source brings until ctx ends.
func (f *Findings) Run(ctx context.Context, source Source) error {
	l := loop{env: f.Env, what: "findings", source: source, wait: findingsWait, rows: findingsRows}
	l.store = func(ctx context.Context, inbox []stream.Message) error {
		return f.enter(ctx, source.StreamCreated(), inbox)
	}
	return l.run(ctx)
}

// enter appends one entry.
func (f *Findings) enter(ctx context.Context, created time.Time, inbox []stream.Message) error {
	found := events.Findings{Stream: created, Alerts: make([]events.Alert, len(inbox))}
	for i := range inbox {
		m := &inbox[i]
		found.Alerts[i] = events.Alert{Sequence: m.Sequence, ID: idOf(m), SHA256: schema.DigestOf(m.Data)}
	}
	event, err := found.Event()
	if err != nil {
		return err
	}
	return f.Env.Retry.Do(ctx, "append findings to the ledger", func() error { return f.Ledger.AppendLedger(ctx, event) })
}

// idOf returns an alert's id. One that is longer than any of ours is left out: sequence and
// hash name the alert.
func idOf(m *stream.Message) string {
	if id := m.ID(); len(id) <= longestID {
		return id
	}
	return ""
}
