// Package sink brings the streams of rarer messages into ClickHouse and into the
// operator's ledger: dead letters, the results of handshakes and their tasks, decisions
// about messages, and alerts. The verifier hosts these loops.
//
// It owns what becomes of each of these messages, and when one is acknowledged. It does
// not own the forms of the messages (pipeline/stream, handshake, messages), the tables
// (pipeline/store), nor what is in an entry of the ledger (pipeline/events).
//
// Invariants: a message is acknowledged when its row, its entry in the ledger or its dead
// letter is durable. Each of these absorbs its own repetition, so that a crash at any step
// loses nothing and doubles nothing. A message that cannot be read keeps none of its
// neighbours from its row.
package sink

import (
	"context"
	"time"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// stage is who hosts the sinks: dead letters name it.
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

// loop is what all sinks have in common.
type loop struct {
	env    *service.Env
	what   string // the messages, in logs and metrics
	source Source
	store  func(ctx context.Context, inbox []stream.Message) error // repeats by itself what can succeed

	rows int           // most messages of a fetch
	wait time.Duration // how long a fetch waits for messages
}

// Of a sink that has no reason for others.
const (
	usualRows = 1000
	usualWait = 500 * time.Millisecond
)

// mostBytes are of a fetch.
const mostBytes = 16 << 20

// run fetches, stores and acknowledges until ctx ends, with the work in hand done. After a
// crash before the ack the messages are redelivered and stored again, which changes nothing.
func (l *loop) run(ctx context.Context) error {
	work, stop := l.env.Drain(ctx)
	defer stop()
	var inbox []stream.Message
	for ctx.Err() == nil {
		err := l.env.Retry.Do(ctx, "fetch "+l.what, func() (err error) {
			inbox, err = l.source.Fetch(ctx, inbox[:0], l.rows, mostBytes, l.wait)
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
		if err := l.store(work, inbox); err != nil {
			return err
		}
		if err := l.env.Retry.Do(work, "acknowledge "+l.what, func() error { return stream.Acknowledge(work, inbox) }); err != nil {
			return err
		}
	}
	return nil
}
