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
	ctx, cancel := c.within(ctx, c.cfg.Timeout)
	defer cancel()
	var report Report
	err := c.unlessRefused(ctx, func(ctx context.Context) (err error) {
		if err = c.create(ctx); err == nil {
			report, err = c.Inspect(ctx)
		}
		return err
	}, anySubject)
	var refused *refusal
	if errors.As(err, &refused) && refused.making() { // another client may be about to create it
		missing := fmt.Errorf("%s may not create what is missing (%w): run plumbline migrate --nats-url as the operator", refused.user, refused.cause)
		err = &unavailable{cause: missing, after: retrySoon}
	}
	if absent := report.absent(); err == nil && absent != nil {
		err = &unavailable{cause: absent, after: retrySoon}
	}
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
		c.cfg.Logger.Warn("a setting of the broker is below the durability requirement", "weakness", weakness)
	}
	return nil
}

// create creates what is missing. It does not check what exists.
func (c *Client) create(ctx context.Context) error {
	var first, second errgroup.Group
	create := func(group *errgroup.Group, object string, exists error, request func(context.Context) error) {
		group.Go(func() error {
			return c.ask(ctx, func(ctx context.Context) error {
				if err := request(ctx); err != nil && !errors.Is(err, exists) {
					return fmt.Errorf("create %s: %w", object, classify(err))
				}
				return nil
			})
		})
	}
	want := c.cfg.topology()
	for _, s := range want.streams {
		create(&first, "stream "+s.Name, jetstream.ErrStreamNameAlreadyInUse, func(ctx context.Context) error {
			_, err := c.js.Stream(ctx, s.Name)
			if errors.Is(err, jetstream.ErrStreamNotFound) {
				_, err = c.js.CreateStream(ctx, s)
			}
			return err
		})
	}
	for _, b := range want.buckets {
		create(&first, "bucket "+b.Bucket, jetstream.ErrBucketExists, func(ctx context.Context) error {
			_, err := c.js.KeyValue(ctx, b.Bucket)
			if errors.Is(err, jetstream.ErrBucketNotFound) {
				if _, err = c.js.CreateKeyValue(ctx, b); err == nil {
					err = c.allowBatches(ctx, b.Bucket)
				}
			}
			return err
		})
	}
	if err := first.Wait(); err != nil {
		return err
	}
	for _, d := range want.consumers {
		create(&second, "consumer "+d.Durable+" on "+d.stream, jetstream.ErrConsumerExists, func(ctx context.Context) error {
			_, err := c.js.Consumer(ctx, d.stream, d.Durable)
			if errors.Is(err, jetstream.ErrConsumerNotFound) {
				_, err = c.js.CreateConsumer(ctx, d.stream, d.ConsumerConfig)
			}
			return err
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
