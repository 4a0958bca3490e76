package cards

import (
	"context"
	"fmt"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// Observer is told what Watch brings. Members that are nil are not told; the
// others may be called at the same time.
type Observer struct {
	Registered func(cardID string)     // each card, those registered before included
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
		r.takeRemoval(change.Key)
		return
	}
	cardID, err := r.admit(change)
	if err != nil {
		o.refused(change.Key, err)
	} else if o.Registered != nil {
		o.Registered(cardID)
	}
}

// admit puts a stored card into memory: into the index, and into the cache while there is
// room. Cards that nobody asks for displace none.
func (r *Registry) admit(change stream.Change) (cardID string, err error) {
	card, err := decode(change.Value, change.Key)
	if err != nil {
		return "", err
	}
	if r.room() {
		kept, err := r.keep(aap.Compile(card), change.Revision, false)
		if err != nil {
			return "", err
		}
		return kept.Entry.CardID, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	entry, err := r.note(card, change.Revision)
	return entry.CardID, err
}

// takeRemoval notes that somebody removed a card from the bucket: it is judged by while
// memory has it, and unknown then, as after a restart.
func (r *Registry) takeRemoval(key string) {
	cardID, err := subject.Agent(key)
	if err != nil {
		return // of no card
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if entry := r.byID[cardID]; entry != nil {
		entry.removed = true
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
