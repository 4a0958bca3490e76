package verifier

import (
	"context"
	"time"

	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/run"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// findings enters every alert of stream ALERTS, whoever raised it, into the
// operator's ledger: an entry a second, if there was one. An alert is in the stream
// before what raised it is acknowledged, and this consumer acknowledges behind the
// entry, so that a crash anywhere leaves no alert out.
type findings struct {
	env    *run.Env
	ledger LedgerEvents
}

// An entry with findingsRows alerts and their longest ids, all of it escaped, is within what a ledger
// and the broker take (1 MiB).
const (
	findingsWait = time.Second
	findingsRows = 1000
	longestID    = 100
)

func (f *findings) carrier(source Source) *carrier {
	return &carrier{env: f.env, what: "findings", source: source, wait: findingsWait, rows: findingsRows,
		store: func(ctx context.Context, inbox []stream.Message) error {
			return f.enter(ctx, source.StreamCreated(), inbox)
		}}
}

// enter appends one entry. The same alerts again, after a crash, may be listed
// twice.
func (f *findings) enter(ctx context.Context, created time.Time, inbox []stream.Message) error {
	found := events.Findings{Stream: created, Alerts: make([]events.Alert, len(inbox))}
	for i := range inbox {
		m := &inbox[i]
		found.Alerts[i] = events.Alert{Sequence: m.Sequence, ID: idOf(m), SHA256: schema.DigestOf(m.Data)}
	}
	event, err := found.Event()
	if err != nil {
		return err
	}
	return f.env.Retry.Do(ctx, "append findings to the ledger", func() error { return f.ledger.AppendLedger(ctx, event) })
}

// idOf is an alert's id. A longer one is none of ours: its sequence and hash stand
// for it.
func idOf(m *stream.Message) string {
	if id := m.ID(); len(id) <= longestID {
		return id
	}
	return ""
}
