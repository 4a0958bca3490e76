package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

// EnsureTopology creates the missing streams, buckets and consumers, and checks the existing
// ones. It changes nothing that exists. A setting below the durability requirement is an error, a
// Weakness, that names the setting. With Config.AllowUnsafe it is logged instead. Any number of
// services may call it at the same time.
func (c *Client) EnsureTopology(ctx context.Context) error {
	report, err := c.prepare(ctx)
	if err != nil {
		return fmt.Errorf("prepare the broker: %w", err)
	}
	for _, what := range report.Unknown {
		c.cfg.Logger.Warn("a setting of the broker cannot be checked", "unknown", what)
	}
	if !c.cfg.AllowUnsafe {
		return report.Err()
	}
	for _, weakness := range report.Weaknesses {
		c.cfg.Logger.Warn("the broker weakens the promise", "weakness", weakness)
	}
	return nil
}

// prepare creates what is missing and inspects everything.
func (c *Client) prepare(ctx context.Context) (report Report, err error) {
	ctx, cancel := c.within(ctx, c.cfg.Timeout)
	defer cancel()
	err = c.unlessRefused(ctx, func(ctx context.Context) (err error) {
		if err = c.create(ctx); err == nil {
			report, err = c.Inspect(ctx)
		}
		return err
	}, anySubject)
	var refused *refusal
	switch {
	case errors.As(err, &refused) && refused.making():
		missing := fmt.Errorf("something that is missing may not be made by %s (%w): make it with plumbline migrate --nats-url, as the operator", refused.user, refused.cause)
		return report, &unavailable{cause: missing, after: retrySoon} // another client may be about to create it
	case err != nil:
		return report, err
	}
	if absent := report.absent(); absent != nil {
		return report, &unavailable{cause: absent, after: retrySoon}
	}
	return report, nil
}

func (c *Client) create(ctx context.Context) error {
	want := c.cfg.topology()
	var first errgroup.Group
	for _, stream := range want.streams {
		first.Go(func() error {
			return c.ask(ctx, func(ctx context.Context) error { return c.createStream(ctx, stream) })
		})
	}
	for _, bucket := range want.buckets {
		first.Go(func() error {
			return c.ask(ctx, func(ctx context.Context) error { return c.createBucket(ctx, bucket) })
		})
	}
	if err := first.Wait(); err != nil {
		return err
	}
	var second errgroup.Group
	for _, consumer := range want.consumers {
		second.Go(func() error {
			return c.ask(ctx, func(ctx context.Context) error { return c.createConsumer(ctx, consumer) })
		})
	}
	return second.Wait()
}

// A cluster without a leader drops requests. askWithin is how long one request may take before it
// is repeated. askPause is the pause after a transient error.
const (
	askWithin = 2 * time.Second
	askPause  = 100 * time.Millisecond
)

// ask repeats a request until it succeeds, fails with an error that is not transient, or ctx
// ends. The request must be safe to repeat.
func (c *Client) ask(ctx context.Context, request func(context.Context) error) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, askWithin)
		err := request(attempt)
		cancel()
		if !errors.Is(err, ErrUnavailable) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(askPause):
		}
	}
}

// createStream creates the stream unless it exists. It does not check an existing one.
func (c *Client) createStream(ctx context.Context, want jetstream.StreamConfig) error {
	_, err := c.js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = c.js.CreateStream(ctx, want)
	}
	if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return fmt.Errorf("make stream %s: %w", want.Name, classify(err))
	}
	return nil
}

func (c *Client) createBucket(ctx context.Context, want jetstream.KeyValueConfig) error {
	_, err := c.js.KeyValue(ctx, want.Bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		if _, err = c.js.CreateKeyValue(ctx, want); err == nil {
			err = c.allowBatches(ctx, want.Bucket)
		}
	}
	if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
		return fmt.Errorf("make bucket %s: %w", want.Bucket, classify(err))
	}
	return nil
}

func (c *Client) createConsumer(ctx context.Context, want durable) error {
	_, err := c.js.Consumer(ctx, want.stream, want.Durable)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		_, err = c.js.CreateConsumer(ctx, want.stream, want.ConsumerConfig)
	}
	if err != nil && !errors.Is(err, jetstream.ErrConsumerExists) {
		return fmt.Errorf("make consumer %s on %s: %w", want.Durable, want.stream, classify(err))
	}
	return nil
}
