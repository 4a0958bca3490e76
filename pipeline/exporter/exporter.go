package exporter

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/run"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// Source is stream RECEIPTS (stream.Consumer).
type Source interface {
	Fetch(ctx context.Context, into []stream.Message, maxMessages, maxBytes int, wait time.Duration) ([]stream.Message, error)
}

// Broker is what the exporter asks of and tells the broker (stream.Client).
type Broker interface {
	ConsumerProgress(ctx context.Context, stream, consumer string) (stream.Progress, error)
	StreamState(ctx context.Context, stream string) (stream.State, error)
	AppendLedger(ctx context.Context, events ...ledger.Event) error
	AnnounceBundle(data []byte) error
	PublishAlerts(ctx context.Context, alerts []stream.Alert) error
	Trace(ctx context.Context, sequence uint64) ([]byte, error)
}

// exporter is the running stage. One goroutine folds, and waits while groups of
// sessions are sealed side by side; within a group the sealing is spread.
type exporter struct {
	env     *run.Env
	cfg     *Config
	source  Source
	broker  Broker
	rows    Rows
	seals   Bucket
	cards   Cards
	confirm func(ctx context.Context) error // fails once another process has the lease (stream.Lease)
	key     ed25519.PrivateKey
	keyID   string
	noted   string // the id of the key that bucket seals names
	signer  signer
	anchors anchored
	metrics *metrics
	clock   *clock

	copies    copies
	schedules schedules
	rules     aivs.Rules // of redaction
	created   time.Time  // of stream RECEIPTS
	index     *index
	folded    atomic.Uint64                                          // sequence of RECEIPTS up to which all is folded, and what was due is sealed
	saved     uint64                                                 // the checkpoint in the bucket
	savedAt   time.Time                                              // when it was written
	reread    func(ctx context.Context, from uint64) (Reader, error) // RECEIPTS once more
	inbox     []stream.Message
	receipts  []schema.Receipt

	// What the groups of a round share, and the index's sessions, are theirs who hold mu.
	mu     sync.Mutex
	names  map[string]store.SessionKey // of the files in plans, and whose they are
	behind bool                        // something was sealed: more may be due already
}

const (
	fetchMessages = 1000
	fetchBytes    = 16 << 20

	checkpointEvery = 5 * time.Second
)

// run folds and seals until ctx ends; the groups in hand are finished within the
// drain budget.
func (e *exporter) run(ctx context.Context) error {
	work, stop := e.env.Drain(ctx)
	defer stop()
	for ctx.Err() == nil {
		wait := e.cfg.Every
		if e.behind {
			wait = time.Millisecond
		}
		e.behind = false
		if err := e.foldFor(ctx, wait); err != nil {
			return run.UnlessEnded(ctx, err)
		}
		if err := e.sealDue(ctx, work); err != nil {
			return run.UnlessEnded(work, err)
		}
		e.metrics.open.Set(float64(len(e.index.sessions)))
		e.metrics.folded.Set(float64(e.index.position))
		e.folded.Store(e.index.position)
		if time.Since(e.savedAt) >= checkpointEvery {
			if err := e.saveCheckpoint(work); err != nil {
				return err
			}
		}
	}
	return e.saveCheckpoint(work)
}

// backlog is how many messages of RECEIPTS are not folded, or came while what was due
// before them is not sealed.
func (e *exporter) backlog() run.Consumer {
	return run.Consumer{Name: "exporter", Backlog: func(ctx context.Context) (uint64, error) {
		state, err := e.broker.StreamState(ctx, stream.Receipts)
		return state.Behind(e.folded.Load()), err
	}}
}

// foldFor folds what comes within the time.
func (e *exporter) foldFor(ctx context.Context, wait time.Duration) error {
	return e.env.Retry.Do(ctx, "fetch receipts", func() error {
		var err error
		e.inbox, err = e.source.Fetch(ctx, e.inbox[:0], fetchMessages, fetchBytes, wait)
		for i := range e.inbox {
			e.fold(&e.inbox[i])
		}
		return err
	})
}

// fold folds one message. What cannot be read would be a fault of a verifier;
// its traces are then reported as rows without receipts.
func (e *exporter) fold(m *stream.Message) {
	if m.Sequence <= e.index.position {
		return
	}
	receipts, end, err := stream.DecodeReceipts(m.Data, e.receipts[:0])
	if err != nil {
		e.env.Log.Error("a message of the receipts cannot be read, passed over", "sequence", m.Sequence, "error", err)
		e.index.position = m.Sequence
		return
	}
	e.receipts = receipts
	e.index.fold(m, receipts, end)
	e.metrics.receipts.Add(float64(len(receipts)))
}

// sealDue seals every session that is due. It first reads the verifier's ack
// floor and then folds all receipts written before: only then is it certain that
// no receipt up to the floor is unknown.
func (e *exporter) sealDue(ctx, work context.Context) error {
	if err := e.renewKeys(work); err != nil || len(e.index.sessions) == 0 {
		return err
	}
	floor, created, err := e.horizon(work)
	if err != nil {
		return err
	}
	if err := e.refold(work, created); err != nil {
		return err
	}
	groups := e.due(floor)
	if len(groups[0].candidates) == 0 {
		return nil
	}
	if err := e.noteSigner(work); err != nil {
		return err
	}
	return e.sealGroups(ctx, work, groups, floor, created)
}

// horizon returns the verifier's ack floor on TRACES, with every receipt below
// it folded, and when TRACES was created.
func (e *exporter) horizon(ctx context.Context) (floor uint64, created time.Time, err error) {
	var last uint64
	err = e.env.Retry.Do(ctx, "ask how far the verifier is", func() error {
		progress, err := e.broker.ConsumerProgress(ctx, stream.Traces, stream.VerifierConsumer)
		if err != nil {
			return err
		}
		traces, err := e.broker.StreamState(ctx, stream.Traces)
		if err != nil {
			return err
		}
		receipts, err := e.broker.StreamState(ctx, stream.Receipts)
		floor, created, last = progress.AckFloor, traces.Created, receipts.LastSequence
		e.index.asked = receipts.Now
		return err
	})
	for err == nil && e.index.position < last {
		err = e.foldFor(ctx, 20*time.Millisecond)
	}
	if err != nil {
		err = fmt.Errorf("find what may be sealed: %w", err)
	}
	return floor, created, err
}
