package stream

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// WebhookConsumer returns the name of the durable consumer of ALERTS that holds the position of an
// endpoint of webhooks. These consumers depend on the configuration of the service and not on the
// topology, so the service makes them.
func WebhookConsumer(endpoint string) string { return "webhook-" + endpoint }

// EnsureWebhook makes the consumer of an endpoint if it is missing, and returns whether it did. A
// new one begins with the next alert. It gives out one alert at a time, so alerts keep their order
// however many processes read it.
func (c *Client) EnsureWebhook(ctx context.Context, endpoint string) (created bool, err error) {
	ctx, cancel := c.within(ctx, c.cfg.Timeout)
	defer cancel()
	wanted := consumer(Alerts, WebhookConsumer(endpoint), "", 1)
	wanted.DeliverPolicy = jetstream.DeliverNewPolicy
	err = c.unlessRefused(ctx, func(ctx context.Context) error {
		_, err := c.js.Consumer(ctx, Alerts, wanted.Durable)
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			created = true // or another process has made it in the meantime, with the same settings
			_, err = c.js.CreateConsumer(ctx, Alerts, wanted.ConsumerConfig)
		}
		return classify(err)
	}, "."+Alerts)
	if err != nil {
		return false, fmt.Errorf("open consumer %s on stream %s: %w", wanted.Durable, Alerts, err)
	}
	return created, nil
}
