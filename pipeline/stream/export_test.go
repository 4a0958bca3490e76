package stream

import "testing"

// EncodeReceipts is encodeReceipts, for property tests with small bodies.
var EncodeReceipts = encodeReceipts

// ParseReply reads a delivery's reply subject.
func ParseReply(reply string) (delivered, sequence uint64, timestamp int64, err error) {
	m, err := parseReply(reply)
	return m.delivered, m.sequence, m.timestamp, err
}

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
