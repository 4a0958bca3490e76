package cards

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// Observer receives the changes that Watch reads. Members may be nil. The others may be called
// concurrently.
type Observer struct {
	Registered func(cardID string, revision uint64) // each card in the order of the bucket, including those registered before; after Rely without those that are rows
	Revoked    func(schema.Revocation)              // each revocation, including earlier ones
	Ready      func()                               // when all earlier cards, except rows that Rely left out, and all earlier revocations are in memory
	Refused    func(error)                          // for what cannot be decoded and is skipped
}

// Watch keeps the registry current until ctx ends. It reads revocations first, so no card is in
// memory without its revocation.
func (r *Registry) Watch(ctx context.Context, o Observer) error {
	revocations := make(chan struct{})
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return r.revocations.Watch(ctx, ">", 0, func(change stream.Change) { r.takeRevocation(change, &o) }, func() { close(revocations) })
	})
	group.Go(func() error {
		select {
		case <-revocations:
		case <-ctx.Done():
			return ctx.Err()
		}
		return r.bucket.Watch(ctx, ">", r.after, func(change stream.Change) { r.takeCard(change, &o) }, func() {
			if o.Ready != nil {
				o.Ready()
			}
		})
	})
	return group.Wait()
}

// Retrier repeats an attempt that fails (service.Retrier).
type Retrier interface {
	Keep(ctx context.Context, operation string, attempt func() error) error
}

// Follow is Watch for a service. It repeats a watch that fails, calls Ready only once, and logs
// each card or revocation that cannot be decoded; effect says in the log what that means for the
// service. It returns nil when ctx ends.
func (r *Registry) Follow(ctx context.Context, retry Retrier, log *slog.Logger, effect string, o Observer) error {
	if o.Ready != nil {
		o.Ready = sync.OnceFunc(o.Ready)
	}
	o.Refused = func(err error) {
		log.Error("a registered card or revocation cannot be used", "effect", effect, "error", err)
	}
	err := retry.Keep(ctx, "watch cards", func() error { return r.Watch(ctx, o) })
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Load reads every card and revocation that exists now. It calls refused, unless it is nil, for
// what cannot be decoded.
func (r *Registry) Load(ctx context.Context, refused func(error)) error {
	watching, done := context.WithCancel(ctx)
	defer done()
	err := r.Watch(watching, Observer{Ready: done, Refused: refused})
	if watching.Err() != nil {
		return ctx.Err() // nil: everything was read
	}
	return err
}

// While runs work with a registry that is kept current. work begins once every card and
// revocation that exists by then is in memory.
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
		// Somebody removed a card from the bucket. It is used while memory has it. After that it is
		// unknown, as after a restart.
		r.mu.Lock()
		defer r.mu.Unlock()
		cardID, err := subject.Agent(change.Key)
		if entry := r.byID[cardID]; err == nil && entry != nil {
			entry.removed = true
		}
		return
	}
	cardID, err := r.admit(change)
	if err != nil {
		o.refused(change.Key, err)
	} else if o.Registered != nil {
		o.Registered(cardID, change.Revision)
	}
}

// admit adds a stored card to the index, and to the cache while there is room. A card that nobody
// requested evicts none.
func (r *Registry) admit(change stream.Change) (cardID string, err error) {
	card, err := decode(change.Value, change.Key)
	if err != nil {
		return "", err
	}
	if r.room() {
		kept, err := r.keep(r.compile(card), change.Revision, false)
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

func (o *Observer) refused(key string, err error) {
	if o.Refused != nil {
		o.Refused(fmt.Errorf("key %s: %w", key, err))
	}
}
