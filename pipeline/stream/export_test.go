package stream

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// KeepAlive restarts the ack wait of every message, as Hold does again and again.
var KeepAlive = keepAlive

// ParseReply parses a delivery's reply subject.
func ParseReply(reply string) (delivered, sequence uint64, timestamp int64, err error) {
	m, err := parseReply(reply)
	return m.delivered, m.sequence, m.timestamp, err
}

// Provoke makes the broker close the connection because of a control line that is too long.
func (c *Client) Provoke() error {
	return c.conn.Publish(strings.Repeat("x", 5000), nil)
}

// LeaveIsolated exports leaveIsolated, which every client of several servers runs by itself.
func (c *Client) LeaveIsolated(every time.Duration) { c.leaveIsolated(every) }

// ForbidBatches makes a stream refuse atomic batches again.
func (c *Client) ForbidBatches(t *testing.T, stream string) {
	t.Helper()
	s, err := c.js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	cfg.AllowAtomicPublish = false
	if _, err := c.js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
}

// Header returns the header of a stored message.
func (c *Client) Header(t *testing.T, stream string, sequence uint64) nats.Header {
	t.Helper()
	s, err := c.js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.GetMsg(t.Context(), sequence)
	if err != nil {
		t.Fatal(err)
	}
	return m.Header
}

// Ahead returns how many messages and bytes are queued, and whether more may arrive.
func (r *Consumer) Ahead() (messages, bytes int, more bool) {
	r.pull.mu.Lock()
	defer r.pull.mu.Unlock()
	for _, m := range r.pull.queue {
		bytes += len(m.Subject) + len(m.Reply) + len(m.Data)
	}
	return len(r.pull.queue), bytes, r.pull.open > 0
}

// NextSize returns the size of the next message as the server counts it.
func (r *Consumer) NextSize() int {
	r.pull.mu.Lock()
	defer r.pull.mu.Unlock()
	return r.pull.queue[0].Size()
}

// ForgetDeliveries creates a consumer again, as if the broker had lost its state.
func ForgetDeliveries(ctx context.Context, c *Client, stream, durable string) error {
	consumer, err := c.js.Consumer(ctx, stream, durable)
	if err != nil {
		return err
	}
	if err := c.js.DeleteConsumer(ctx, stream, durable); err != nil {
		return err
	}
	_, err = c.js.CreateConsumer(ctx, stream, consumer.CachedInfo().Config)
	return err
}

// DeliveredToReaders returns how many messages the broker has delivered to the readers of a stream.
func DeliveredToReaders(t testing.TB, c *Client, name string) (messages uint64) {
	t.Helper()
	read, err := c.js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	for consumer := range read.ListConsumers(t.Context()).Info() {
		if consumer.Config.Durable == "" {
			messages += consumer.Delivered.Consumer
		}
	}
	return messages
}

// WatchLimits returns how many messages and bytes of a watch may wait; a negative number is no limit.
func (b *Bucket) WatchLimits(ctx context.Context) (messages, bytes int, err error) {
	sub, err := (&watch{bucket: b, pattern: ">"}).subscribe(ctx, func(*nats.Msg) {})
	if err != nil {
		return 0, 0, err
	}
	return sub.PendingLimits()
}
