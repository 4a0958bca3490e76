package ingest

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// Serve runs the stage until ctx ends and the requests in progress are answered. An unusable
// token file, certificate or address ends it at once. An unavailable broker does not.
func Serve(ctx context.Context, cfg *Config, env *service.Env) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen for publishers: %w", err)
	}
	return ServeOn(ctx, listener, cfg, env)
}

// ServeOn does the same on a listener, which it closes.
func ServeOn(ctx context.Context, listener net.Listener, cfg *Config, env *service.Env) error {
	s, err := newServer(listener.Addr(), cfg, env)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	return s.serve(ctx, listener)
}

func newServer(address net.Addr, cfg *Config, env *service.Env) (*server, error) {
	read, faults := cfg.readFiles(address.String(), env.Log)
	if err := faults.Err(); err != nil {
		return nil, err
	}
	return &server{
		env: env, cfg: cfg, files: read,
		trust:   trust{mode: cfg.CardSignatures, issuers: read.issuers},
		exposed: cfg.secure(address),
		memory:  newMemory(cfg.MaxInFlightBytes),
		pace:    leastPace,
		stored:  newStored(),
		metrics: newMetrics(env.Metrics),
		connect: func(ctx context.Context) (*stream.Client, error) { return service.Broker(ctx, &cfg.Common, env) },
	}, nil
}

// serve answers operators while it connects to the broker, and publishers from then on.
func (s *server) serve(ctx context.Context, listener net.Listener) error {
	work, stop := s.env.Drain(ctx)
	defer stop()
	door, closed := newDoor(work, s), make(chan struct{})
	s.stopping = func() bool { return ctx.Err() != nil }
	return service.Group(ctx,
		func(ctx context.Context) error {
			defer close(closed)
			return door.serve(ctx, work, listener)
		},
		func(ctx context.Context) error { return s.attend(ctx, work, door, closed) })
}

// attend connects to the broker, works with it, and returns after the door is closed, when nobody
// waits for the committer any more.
func (s *server) attend(ctx, work context.Context, door *door, closed <-chan struct{}) (err error) {
	broker, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Close()) }()
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	return service.Group(work,
		func(context.Context) error {
			defer cut()
			return broker.Closed(ctx)
		},
		func(work context.Context) error {
			defer cut()
			return s.work(ctx, work, broker, door, closed)
		})
}

// work opens the door once every card is known.
func (s *server) work(ctx, work context.Context, broker *stream.Client, door *door, closed <-chan struct{}) error {
	var registry *cards.Registry
	var handshakes, messages *stream.Bucket
	err := s.env.Open(ctx, broker, func() (err error) {
		if registry, err = cards.Open(ctx, broker, s.cfg.Cards.CacheBytes); err != nil {
			return err
		}
		if handshakes, err = broker.Bucket(ctx, stream.Handshakes); err != nil {
			return err
		}
		messages, err = broker.Bucket(ctx, stream.Messages)
		return err
	})
	if err != nil {
		return err
	}
	registry.Expose(s.env.Metrics)
	committer := broker.NewCommitter(s.commits)
	defer committer.Close()
	s.traces, s.cards, s.sessions, s.ledger = committer, registry, broker, broker
	s.letters, s.marks = newLetters(s.env, broker, s.metrics), broker
	if err := s.prepareHandshakes(ctx, broker, registry, handshakes); err != nil {
		return err
	}
	if err := s.prepareMessages(messages); err != nil {
		return err
	}
	if err := s.prepareMicro(ctx); err != nil {
		return err
	}
	known := make(chan struct{})
	open := func() {
		door.open(s.routes())
		close(known)
		s.env.Started()
	}
	return service.Group(work,
		func(context.Context) error { return service.TryBroker(ctx, s.env, broker) },
		func(context.Context) error {
			return registry.Follow(ctx, s.env.Retry, s.env.Log, "it is not served", cards.Observer{Ready: open})
		},
		func(work context.Context) error { return s.answerNATS(ctx, work, broker, known) },
		func(context.Context) error { return s.watchKeys(ctx) },
		func(context.Context) error { return s.moveAcceptances(ctx) },
		func(work context.Context) error { return s.letters.run(work, closed) })
}
