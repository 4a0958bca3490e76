package stream

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Change is the new state of a key.
type Change struct {
	Key      string
	Value    []byte // nil when Deleted
	Revision uint64
	Deleted  bool
}

// watchPause is the pause between attempts if the broker refuses the watch.
const watchPause = 50 * time.Millisecond

// Watch calls apply with the current state of every key that matches the pattern (">" matches
// all), then ready once, and then apply with each change. It returns the error of ctx when ctx
// ends, an error when the client is closed, or ErrRefused. After a loss of the connection it
// continues with what changed in the meantime.
func (b *Bucket) Watch(ctx context.Context, pattern string, apply func(Change), ready func()) error {
	w := watch{bucket: b, pattern: pattern, apply: apply, ready: ready}
	for {
		err := w.run(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if b.client.conn.IsClosed() || !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrRefused) {
			return err
		}
		select {
		case <-time.After(watchPause):
		case <-ctx.Done():
		}
	}
}

// watch is one call of Watch. The client library would resume a watch by itself, but only after
// several missed heartbeats. A new watch resumes at once.
type watch struct {
	bucket  *Bucket
	pattern string
	apply   func(Change)
	ready   func()
	listed  bool   // ready was called
	last    uint64 // the highest revision applied; the bucket delivers them in order
}

// run watches until ctx ends or the connection is lost. The library unsubscribes when its context
// ends, and closes the channel.
func (w *watch) run(ctx context.Context) error {
	client := w.bucket.client
	ctx, end := context.WithCancelCause(ctx)
	cancel := func() { end(nil) }
	defer cancel()
	defer context.AfterFunc(client.connectedLink(ctx), cancel)()
	defer client.awaitRefusal(end, "CONSUMER.CREATE.KV_"+w.bucket.name, flowControl+"KV_"+w.bucket.name)()
	tooSlow := time.AfterFunc(client.cfg.Timeout, cancel)
	watcher, err := w.bucket.kv.Watch(ctx, w.pattern)
	tooSlow.Stop()
	if err != nil {
		return w.bucket.fault("watch", w.pattern, refusedOr(ctx, classify(err)))
	}
	for entry := range watcher.Updates() {
		if ctx.Err() == nil {
			w.take(entry)
		}
	}
	return w.bucket.fault("watch", w.pattern, refusedOr(ctx, classify(nats.ErrDisconnected)))
}

// take handles an update. A nil entry marks the end of the current state.
func (w *watch) take(entry jetstream.KeyValueEntry) {
	switch {
	case entry == nil && !w.listed:
		w.listed = true
		w.ready()
	case entry != nil && entry.Revision() > w.last:
		w.last = entry.Revision()
		change := Change{Key: entry.Key(), Revision: entry.Revision()}
		if change.Deleted = entry.Operation() != jetstream.KeyValuePut; !change.Deleted {
			change.Value = entry.Value()
		}
		w.apply(change)
	}
}
