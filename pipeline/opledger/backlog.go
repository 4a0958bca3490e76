package opledger

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// progress records how far a stream has been read and stored.
type progress struct {
	next atomic.Uint64 // sequence to read next; 0 before the stream is open
}

// begin sets the sequence that is read first.
func (p *progress) begin(from uint64) { p.next.Store(max(from, 1)) }

// stored records that the rows of messages are stored.
func (p *progress) stored(inbox []stream.Message) {
	if n := len(inbox); n > 0 {
		p.next.Store(inbox[n-1].Sequence + 1)
	}
}

var errNotOpen = errors.New("the stream is not open yet")

// backlog returns how many messages of the stream are not stored yet.
func (p *progress) backlog(consumer, name string, broker Broker) service.Consumer {
	return service.Consumer{Name: consumer, Backlog: func(ctx context.Context) (uint64, error) {
		next := p.next.Load()
		if next == 0 {
			return 0, errNotOpen
		}
		state, err := broker.StreamState(ctx, name)
		return state.Behind(next - 1), err
	}}
}

// Backlog returns the backlog of the operator's ledger: events that are not rows yet.
func (k *Keeper) Backlog() service.Consumer {
	return k.progress.backlog("ledger", stream.Ledger, k.Broker)
}

// Backlog returns the backlog of agents' own ledgers: entries that are not rows yet.
func (a *Auditor) Backlog() service.Consumer {
	return a.progress.backlog("agent_ledgers", stream.AgentLedger, a.Broker)
}
