package stream

import (
	"context"
	"strings"
	"testing"
	"time"
)

// EncodeReceipts is encodeReceipts, for property tests with small bodies.
var EncodeReceipts = encodeReceipts

// ParseReply reads a delivery's reply subject.
func ParseReply(reply string) (delivered, sequence uint64, timestamp int64, err error) {
	m, err := parseReply(reply)
	return m.delivered, m.sequence, m.timestamp, err
}

// Provoke has the broker close the connection over a control line that is too long.
func (c *Client) Provoke() error {
	return c.conn.Publish(strings.Repeat("x", 5000), nil)
}

// LeaveIsolated is leaveIsolated, which every client of several servers does by itself.
func (c *Client) LeaveIsolated(every time.Duration) { c.leaveIsolated(every) }

// ForbidBatches takes a stream's leave to take atomic batches away again.
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

// Ahead is how many messages and bytes wait to be taken, and whether more may come.
func (r *Consumer) Ahead() (messages, bytes int, more bool) {
	r.pull.mu.Lock()
	defer r.pull.mu.Unlock()
	for _, m := range r.pull.queue {
		bytes += len(m.Subject) + len(m.Reply) + len(m.Data)
	}
	return len(r.pull.queue), bytes, r.pull.open > 0
}

// NextSize is how many bytes the server counts for the next message.
func (r *Consumer) NextSize() int {
	r.pull.mu.Lock()
	defer r.pull.mu.Unlock()
	return r.pull.queue[0].Size()
}

// Queued is how many messages wait to be read.
func (r *Reader) Queued() int {
	r.source.pull.mu.Lock()
	defer r.source.pull.mu.Unlock()
	return len(r.source.pull.queue)
}

// ForgetDeliveries makes a consumer anew, as if the broker had lost what it knew of it.
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
