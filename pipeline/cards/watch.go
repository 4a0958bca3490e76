package cards

import (
	"context"
	"fmt"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// Observer is told what Watch brings. Members that are nil are not told; the
// others may be called at the same time.
type Observer struct {
	Registered func(*Card)             // each card, those registered before included
	Revoked    func(schema.Revocation) // each revocation, likewise
	Ready      func()                  // once, when all of those registered or revoked before are in memory
	Refused    func(error)             // of what cannot be read and is passed over
}

// Watch keeps the registry current until ctx ends: revocations first, so that
// no card is in memory whose revocation is not.
func (r *Registry) Watch(ctx context.Context, o Observer) error {
	revocations := make(chan struct{})
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return r.revocations.Watch(ctx, ">", func(change stream.Change) { r.takeRevocation(change, &o) }, func() { close(revocations) })
	})
	group.Go(func() error {
		select {
		case <-revocations:
		case <-ctx.Done():
			return ctx.Err()
		}
		return r.bucket.Watch(ctx, ">", func(change stream.Change) { r.takeCard(change, &o) }, o.ready)
	})
	return group.Wait()
}

// While works with a registry that is kept current: it begins once every card and
// revocation of by now is in memory.
func (r *Registry) While(ctx context.Context, log *slog.Logger, work func(context.Context) error) error {
	watching, done := context.WithCancel(ctx)
	defer done()
	known := make(chan struct{})
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		err := r.Watch(watching, Observer{
			Ready:   func() { close(known) },
			Refused: func(err error) { log.Error("a registered card or revocation cannot be used", "error", err) },
		})
		if watching.Err() == nil {
			return err
		}
		return nil
	})
	group.Go(func() error {
		defer done()
		select {
		case <-known:
			return work(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return group.Wait()
}

func (r *Registry) takeCard(change stream.Change, o *Observer) {
	if change.Deleted {
		return
	}
	card, err := r.admit(change.Value, change.Revision)
	if err != nil {
		o.refused(change.Key, err)
	} else if o.Registered != nil {
		o.Registered(card)
	}
}

func (r *Registry) takeRevocation(change stream.Change, o *Observer) {
	if change.Deleted {
		return
	}
	revocation, err := readRevocation(change.Value)
	if err != nil {
		o.refused(change.Key, err)
		return
	}
	r.noteRevocation(revocation)
	if o.Revoked != nil {
		o.Revoked(revocation)
	}
}

func (o *Observer) ready() {
	if o.Ready != nil {
		o.Ready()
	}
}

func (o *Observer) refused(key string, err error) {
	if o.Refused != nil {
		o.Refused(fmt.Errorf("key %s: %w", key, err))
	}
}
