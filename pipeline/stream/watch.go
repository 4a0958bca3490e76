package stream

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Change is a key's new state.
type Change struct {
	Key      string
	Value    []byte // nil when Deleted
	Revision uint64
	Deleted  bool
}

// watchPause is how often a lost connection is looked at.
const watchPause = 100 * time.Millisecond

// Watch calls apply with the present state of every key that matches the pattern
// (">" is all), then ready once, then apply with each change as it comes. It
// returns when ctx ends, with its error, or when the client is closed. After a
// loss of the connection it goes on with what changed in the meantime.
func (b *Bucket) Watch(ctx context.Context, pattern string, apply func(Change), ready func()) error {
	w := watch{bucket: b, pattern: pattern, apply: apply, ready: ready}
	for {
		err := w.run(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if b.client.conn.IsClosed() || !errors.Is(err, ErrUnavailable) {
			return err
		}
		select {
		case <-time.After(watchPause):
		case <-ctx.Done():
		}
	}
}

// watch is one call of Watch. The client library would resume a watch by itself,
// but only after several missed heartbeats; a new one knows at once.
type watch struct {
	bucket  *Bucket
	pattern string
	apply   func(Change)
	ready   func()
	told    bool
	last    uint64 // the highest revision applied; the bucket gives them in order
}

// run watches until the connection is lost.
func (w *watch) run(ctx context.Context) error {
	link := w.bucket.client.link.Load()
	if link.Err() != nil {
		return w.bucket.fault("watch", w.pattern, nats.ErrDisconnected)
	}
	watcher, err := w.bucket.kv.Watch(ctx, w.pattern)
	if err != nil {
		return w.bucket.fault("watch", w.pattern, err)
	}
	err = w.follow(ctx, link, watcher.Updates())
	if stopped := watcher.Stop(); stopped != nil && !transient(stopped) {
		err = errors.Join(err, stopped)
	}
	return err
}

func (w *watch) follow(ctx context.Context, link *link, updates <-chan jetstream.KeyValueEntry) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-link.Done():
			return w.bucket.fault("watch", w.pattern, nats.ErrDisconnected)
		case entry, open := <-updates:
			if !open {
				return w.bucket.fault("watch", w.pattern, nats.ErrDisconnected)
			}
			w.take(entry)
		}
	}
}

// take handles an update; nil stands behind the present state.
func (w *watch) take(entry jetstream.KeyValueEntry) {
	switch {
	case entry == nil && !w.told:
		w.told = true
		w.ready()
	case entry != nil && entry.Revision() > w.last:
		w.last = entry.Revision()
		w.apply(changeOf(entry))
	}
}

func changeOf(e jetstream.KeyValueEntry) Change {
	if e.Operation() != jetstream.KeyValuePut {
		return Change{Key: e.Key(), Revision: e.Revision(), Deleted: true}
	}
	return Change{Key: e.Key(), Value: e.Value(), Revision: e.Revision()}
}
