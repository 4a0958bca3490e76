package verifier

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

const stageName = "verifier"

// Source reads the traces of the partitions that this process owns, in order, and records how far
// they are done (ownership.Term).
type Source interface {
	Fetch(ctx context.Context, into []stream.Message, maxMessages, maxBytes int, wait time.Duration) ([]stream.Message, error)
	StreamCreated() time.Time
	Begin(ctx context.Context, through uint64) error
	Done(ctx context.Context, through uint64) error
}

// Rows stores traces and verdicts durably, and looks up what is stored (store.Store).
type Rows interface {
	InsertTraces(ctx context.Context, rows *store.TraceBatch) error
	LookUpTraces(ctx context.Context, traces []store.TraceKey) (*store.TraceResults, error)
	LookUpVerdicts(ctx context.Context, traces []store.TraceKey) (map[schema.Digest]*schema.Verdict, error)
}

// Outlet publishes the verifier's results (stream.Client).
type Outlet interface {
	PublishReceipts(ctx context.Context, byPartition [][]schema.Receipt) error
	PublishAlerts(ctx context.Context, alerts []wire.Alert) error
	DeadLetter(ctx context.Context, letter wire.DeadLetter) error
}

// verifier is the running stage. One goroutine fetches and judges (collect), with the help of others in a large
// slice; another one commits. While a batch is committed the next one is filled.
type verifier struct {
	env        *service.Env
	cfg        *Config
	source     Source // of the current term
	rows       Rows
	outlet     Outlet
	metrics    *metrics
	workspaces []workspace // as many as judge at the same time
	newRows    func() *store.TraceBatch
	late       *lateCards

	inbox      []stream.Message // what was fetched
	waiting    []stream.Message // of the inbox: not judged yet
	behind     bool             // the last fetch of a slice ended before its time was over: normally the stream has more
	sliceRows  int              // these two are the constants, and smaller in the simulation
	aheadRows  int
	judgements [judgedTogether]judgement
}

const (
	// sliceRows is how many messages a fetch waits for, and how many are judged before the batch is looked at again. So
	// judging overlaps with delivery.
	sliceRows = 1000

	// In a backlog with agents that are not known, the verifier also fetches further messages that have arrived. One query
	// then finds the cards of all their agents. For 5,000 agents it takes little longer than for 1,000.
	aheadRows     = store.MaxAgents - sliceRows
	aheadWait     = 5 * time.Millisecond
	prefetchBytes = 16 << 20
)

// Messages that are judged together. Decoded, a message may take sixteen times its size.
const (
	judgedTogether = 128     // messages, at most; their judgements fit into the cache of a core
	judgedBytes    = 4 << 20 // of messages, at most, unless it is one message
	leastShare     = 32      // messages that are worth another goroutine
	maxJudges      = 4       // with more of them storing takes longer than judging

	reusedBytes = 8 << 10 // the judgement of a larger message is not reused: its memory would stay for good
)

// run judges until ctx ends, and then commits the last batch within the drain budget.
func (v *verifier) run(ctx context.Context) error {
	work, stop := v.env.Drain(ctx)
	defer stop()
	full, free := make(chan *batch), make(chan *batch, 2)
	for range cap(free) {
		free <- &batch{rows: v.newRows(), unknown: map[string]bool{}}
	}
	return service.Group(work,
		func(work context.Context) error {
			defer close(full)
			return v.collect(ctx, work, free, full)
		},
		func(work context.Context) error {
			for b := range full {
				if err := v.commit(work, b); err != nil {
					return err
				}
				b.reset()
				free <- b
			}
			return nil
		})
}

// collect fills one batch after the other and passes each to the committer when it is due.
func (v *verifier) collect(ctx, work context.Context, free <-chan *batch, full chan<- *batch) error {
	defer func() { // what is not judged may have another owner now
		clear(v.waiting)
		v.waiting, v.behind = nil, false
	}()
	for first := true; ctx.Err() == nil && work.Err() == nil; first = false {
		b := <-free
		b.first = first
		passed, err := v.fill(ctx, work, b, full)
		if err != nil {
			return err
		}
		if passed {
			continue
		}
		select {
		case full <- b:
		case <-work.Done():
			return work.Err()
		}
	}
	return nil
}

// fill judges traces into the batch until it is full or ctx has ended. A batch that is old enough
// is passed on as soon as its commit can begin. It grows while the previous batch is still being
// committed, so batches are large under load.
func (v *verifier) fill(ctx, work context.Context, b *batch, full chan<- *batch) (passed bool, err error) {
	for ctx.Err() == nil && work.Err() == nil && !v.cfg.BatchFull(len(b.messages), b.bytes) {
		now := time.Now()
		if b.due(v.cfg, now) {
			select {
			case full <- b:
				return true, nil
			default:
			}
		}
		most := v.sliceRows
		if len(v.waiting) == 0 {
			if err := v.fetch(ctx, b, now); err != nil && ctx.Err() == nil {
				return false, err
			}
			now, most = time.Now(), len(v.inbox) // the look-up is part of the batch's age; what it fetches is judged later
			v.lookAhead(ctx)
			v.waiting = v.inbox
		}
		b.behind = v.behind
		slice := v.waiting[:b.takes(v.cfg, v.waiting, most)]
		v.waiting = v.waiting[len(slice):]
		if err := v.judgeAll(work, b, slice, now); err != nil {
			return false, err
		}
	}
	return false, nil
}

// fetch fetches a slice that fits into the batch. After a crash before the last step of commit the slice is read again.
func (v *verifier) fetch(ctx context.Context, b *batch, now time.Time) error {
	wait := b.fetchWait(v.cfg, now)
	v.inbox = v.inbox[:0]
	err := v.env.Retry.Do(ctx, "fetch traces", func() (err error) {
		most := min(v.sliceRows, v.cfg.BatchRows-len(b.messages))
		v.inbox, err = v.source.Fetch(ctx, v.inbox, most, v.cfg.BatchBytes-b.bytes, wait)
		if len(v.inbox) > 0 {
			return nil
		}
		return err
	})
	v.behind = time.Since(now) < wait
	return err
}

// lookAhead fetches more messages into the inbox and looks up their agents. It does so only in a backlog, and only if an
// agent of the inbox is not known. The next fetch repeats a fetch that fails, and Know a look-up that fails.
func (v *verifier) lookAhead(ctx context.Context) {
	registry := v.workspaces[0].registry
	if !v.behind || !slices.ContainsFunc(v.inbox, func(m stream.Message) bool { return !registry.Knows(m.Agent) }) {
		return
	}
	v.inbox, _ = v.source.Fetch(ctx, v.inbox, v.aheadRows, prefetchBytes, aheadWait)
	registry.Ahead(ctx, stream.Agents(v.inbox))
}

// judgeAll judges messages, and adds the results to the batch in the order of the stream. It clears them in the inbox.
func (v *verifier) judgeAll(ctx context.Context, b *batch, slice []stream.Message, now time.Time) error {
	defer clear(slice) // a smaller inbox would leave the rest in memory
	if b.rows.Len() == 0 {
		_, b.revocations = v.late.registry.RevocationsSince(0)
	}
	v.workspaces[0].warm(ctx, slice)
	for rest := slice; len(rest) > 0; {
		n := together(rest)
		messages := rest[:n]
		rest = rest[n:]
		if err := v.judgeTogether(ctx, messages, now); err != nil {
			return err
		}
		for i := range messages {
			j := &v.judgements[i]
			if err := b.add(messages[i], j, now); err != nil {
				return err
			}
			if j.refusal == nil && !j.open(&messages[i]) {
				v.metrics.judged(&j.verdict)
			}
			if len(messages[i].Data) > reusedBytes {
				*j = judgement{}
			}
		}
	}
	return nil
}

// together returns how many of the messages are judged together: at least one.
func together(messages []stream.Message) (n int) {
	for bytes := 0; n < min(len(messages), judgedTogether); n++ {
		if bytes += len(messages[n].Data); bytes > judgedBytes && n > 0 {
			break
		}
	}
	return n
}

// judgeTogether judges messages into v.judgements. Each workspace takes the next message that none has taken.
func (v *verifier) judgeTogether(ctx context.Context, messages []stream.Message, now time.Time) error {
	created := v.source.StreamCreated()
	var taken atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for w := range min(len(v.workspaces), len(messages)/leastShare+1) {
		group.Go(func() error {
			for {
				i := int(taken.Add(1)) - 1
				if i >= len(messages) {
					return nil
				}
				err := v.workspaces[w].judge(ctx, &v.judgements[i], &messages[i], created, now)
				if err != nil {
					err = v.env.Retry.Do(ctx, "judge trace", func() error {
						return v.workspaces[w].judge(ctx, &v.judgements[i], &messages[i], created, now)
					})
				}
				if err != nil {
					return err
				}
			}
		})
	}
	return group.Wait()
}

// commit makes a batch durable and then records that it is done. The order of the steps is the
// guarantee. Each step is repeated until it succeeds or ctx ends. After a crash, or when the
// partition goes to another process, all messages of the batch are read again, and each step is
// idempotent.
func (v *verifier) commit(ctx context.Context, b *batch) error {
	if len(b.messages) == 0 {
		return nil
	}
	through := b.messages[len(b.messages)-1].Sequence
	span := v.env.Spans.Begin("verify traces", b.since)
	span.Number("plumbline.traces", len(b.messages))
	for _, step := range []struct {
		operation string
		do        func() error
	}{
		{"record that traces are begun", func() error { return v.source.Begin(ctx, through) }},     // after a crash their rows are looked up before they are inserted
		{"look up copies", func() error { return v.settle(ctx, b) }},                               // after a crash its own rows are copies, too
		{"insert traces", func() error { return b.insert(ctx, v.rows) }},                           // after a crash the same rows again: reading collapses them
		{"publish dead letters", func() error { return b.publishDead(ctx, v.outlet) }},             // after a crash the same letters again, under the same ids
		{"publish receipts", func() error { return v.outlet.PublishReceipts(ctx, b.receipts[:]) }}, // after a crash the same receipts again: the exporter counts each once
		{"publish alerts", func() error { return v.outlet.PublishAlerts(ctx, b.alerts) }},          // after a crash the same alerts again, under the same ids
		{"judge traces of late cards", func() error { return v.late.recheck(ctx, b) }},             // after a crash the traces are judged by these cards
		{"record that traces are done", func() error { return v.source.Done(ctx, through) }},       // after a crash nothing is read again
	} {
		span.Step(step.operation)
		if err := v.env.Retry.Do(ctx, step.operation, step.do); err != nil {
			span.End(err)
			return err
		}
	}
	span.End(nil)
	v.metrics.committed(b)
	v.late.recheckRevocations(b) // the next owner of the partitions checks the recent ones, so an end before this loses nothing
	return nil
}
