package opledger

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
)

// Broker provides the stream (see On).
type Broker interface {
	StreamState(ctx context.Context, name string) (stream.State, error)
	Read(ctx context.Context, cfg stream.ConsumerConfig) (Source, error)
}

// Source reads a stream (stream.Consumer).
type Source interface {
	Fetch(ctx context.Context, into []stream.Message, maxMessages, maxBytes int, wait time.Duration) ([]stream.Message, error)
	StreamCreated() time.Time
	Close()
}

// On returns the broker that a client is connected to.
func On(client *stream.Client) AuditBroker { return connected{client} }

type connected struct{ *stream.Client }

// Read opens a reader.
func (c connected) Read(ctx context.Context, cfg stream.ConsumerConfig) (Source, error) {
	return c.OpenConsumer(ctx, cfg)
}

// Rows stores entries as rows (store.Store).
type Rows interface {
	InsertLedger(ctx context.Context, entries []store.LedgerEntry) error
}

// Keeper chains stream LEDGER into the book. It acks nothing: the book itself shows where to
// continue reading.
type Keeper struct {
	Env      *service.Env
	Dir      string
	Name     string // the owner of the ledger
	Rotation ledger.Rotation
	Broker   Broker
	Rows     Rows
	Confirm  func(ctx context.Context) error // returns an error once another process keeps the ledger (stream.Lease)

	book     *Book
	source   Source
	inbox    []stream.Message
	progress progress
}

// Limits of one fetch. It takes no more messages than fit in one file, so a batch begins at most
// one file.
const (
	batchMessages = 1000
	batchBytes    = 8 << 20
	batchWait     = 3 * time.Second
)

// Run chains until ctx ends: it appends events to the book, and then stores the new entries as rows.
// After a crash, the book shows where to continue reading, and the rows of its tail are stored
// again. Run returns an error if the ledger on disk was changed: nothing is appended after a change.
func (k *Keeper) Run(ctx context.Context) (err error) {
	if k.book, err = Open(k.Dir, k.Name, k.Rotation); err != nil {
		return err
	}
	defer func() {
		if k.book != nil {
			err = errors.Join(err, k.book.Close())
		}
	}()
	work, stop := k.Env.Drain(ctx)
	defer stop()
	if err := k.insert(work, k.book.Tail()); err != nil {
		return err
	}
	if err := k.Env.Retry.Do(ctx, "open the ledger's stream", func() (err error) {
		k.source, err = openReader(ctx, k.Broker, stream.Ledger, k.book.Position(), &k.progress)
		return err
	}); err != nil {
		return service.UnlessEnded(ctx, err)
	}
	defer k.source.Close()
	most := min(batchMessages, int(min(k.Rotation.Entries, batchMessages))) // at most batchMessages
	for ctx.Err() == nil {
		if k.inbox, err = fetch(ctx, k.Env, "fetch ledger events", k.source, k.inbox, most); err != nil {
			return service.UnlessEnded(ctx, err)
		}
		if len(k.inbox) == 0 {
			continue
		}
		placed, err := k.chain(work, k.events())
		if err == nil {
			err = k.insert(work, placed)
		}
		if err != nil {
			return err
		}
		k.progress.stored(k.inbox)
	}
	return nil
}

// openReader opens a reader after a position, or at the beginning of the stream where the
// position belongs to another stream. It also begins progress there.
func openReader(ctx context.Context, broker Broker, name string, behind Position, progress *progress) (Source, error) {
	state, err := broker.StreamState(ctx, name)
	if err != nil {
		return nil, err
	}
	cfg := stream.ConsumerConfig{Stream: name}
	if state.Created.Equal(behind.Stream) {
		cfg.From = behind.Sequence + 1
	}
	progress.next.Store(max(cfg.From, 1))
	return broker.Read(ctx, cfg)
}

// fetch fetches the next messages into an inbox. It retries until ctx ends.
func fetch(ctx context.Context, env *service.Env, what string, source Source, inbox []stream.Message, most int) ([]stream.Message, error) {
	inbox = inbox[:0]
	err := env.Retry.Do(ctx, what, func() (err error) {
		inbox, err = source.Fetch(ctx, inbox, most, batchBytes, batchWait)
		if len(inbox) > 0 {
			return nil
		}
		return err
	})
	return inbox, err
}

// events parses the inbox. It logs and skips messages that can never be an entry.
func (k *Keeper) events() []Event {
	events := make([]Event, 0, len(k.inbox))
	for i := range k.inbox {
		m := &k.inbox[i]
		parsed, err := wire.ParseEvent(m.Subject, m.ID(), m.Data)
		event := Event{Type: parsed.Type, ID: parsed.ID, Data: parsed.Data,
			Stream: k.source.StreamCreated(), Sequence: m.Sequence, Received: m.Received}
		if err == nil {
			err = event.Check()
		}
		if err != nil {
			k.Env.Log.Error("message of stream LEDGER is not a valid event, skipped", "sequence", m.Sequence, "error", err)
			continue
		}
		events = append(events, event)
	}
	return events
}

// chain appends events. After a failure it opens the book again, which shows what reached the
// disk. The rows of those entries are stored again.
func (k *Keeper) chain(ctx context.Context, events []Event) (placed []Placed, err error) {
	err = k.Env.Retry.Do(ctx, "write the ledger", func() error {
		if err := k.Confirm(ctx); err != nil {
			return err
		}
		if k.book == nil {
			book, err := Open(k.Dir, k.Name, k.Rotation)
			if err != nil {
				return err
			}
			k.book, placed = book, book.Tail()
		}
		some, err := k.book.Append(events)
		if err != nil {
			broken := k.book
			k.book = nil
			return errors.Join(err, broken.Close())
		}
		placed = append(placed, some...)
		return nil
	})
	return placed, err
}

func (k *Keeper) insert(ctx context.Context, placed []Placed) error {
	if len(placed) == 0 {
		return nil
	}
	rows := make([]store.LedgerEntry, len(placed))
	for i := range placed {
		p := &placed[i]
		rows[i] = store.LedgerEntry{Ledger: store.OperatorLedger, File: p.File, StreamCreated: p.Position.Stream, Sequence: p.Position.Sequence,
			Seq: p.Seq, Type: string(p.Type), Data: string(p.Data), Hash: p.Hash.String(), At: p.At}
	}
	if err := k.Env.Retry.Do(ctx, "insert ledger entries", func() error { return k.Rows.InsertLedger(ctx, rows) }); err != nil {
		return fmt.Errorf("rows of the ledger: %w", err)
	}
	return nil
}

// progress records how far a stream has been read and stored.
type progress struct {
	next atomic.Uint64 // sequence to read next; 0 before the stream is open
}

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
