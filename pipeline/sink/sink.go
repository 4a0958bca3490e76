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
	"context"
	"time"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
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

// fetch limits one fetch of a sink.
type fetch struct {
	rows int           // most messages
	wait time.Duration // how long to wait for messages
}

// usual are the limits of a sink that has no reason for others.
var usual = fetch{rows: 1000, wait: 500 * time.Millisecond}

// mostBytes are the most bytes of a fetch.
const mostBytes = 16 << 20

// run fetches, stores and acknowledges until ctx ends. It finishes the messages that it has
// fetched. what names the messages in logs and metrics. store retries by itself what can succeed.
func run(ctx context.Context, env *service.Env, what string, source Source, limits fetch, store func(ctx context.Context, inbox []stream.Message) error) error {
	work, stop := env.Drain(ctx)
	defer stop()
	var inbox []stream.Message
	for ctx.Err() == nil {
		err := env.Retry.Do(ctx, "fetch "+what, func() (err error) {
			inbox, err = source.Fetch(ctx, inbox[:0], limits.rows, mostBytes, limits.wait)
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
