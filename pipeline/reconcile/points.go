package reconcile

import (
	"context"
	"slices"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// overdueAfter is how long drift may take to ack a trace. Drift holds each trace back for its
// lateness, some seconds, and reads on as long as there are more.
const overdueAfter = 10 * time.Minute

// pointCheck compares the drift points with the messages of stream TRACES.
type pointCheck struct {
	*traceCheck
	rows    *cursor[store.MeasuredTrace]
	missing []message // to be looked up by digest
	waiting [subject.Partitions]waiting
}

// waiting counts the traces of a partition that drift has not acked.
type waiting struct {
	traces uint64
	oldest time.Time // receive time of the oldest
}

func (t *traceCheck) openPoints(ctx context.Context) (*pointCheck, error) {
	rows, err := open(t.Store.MeasuredTraces(ctx), func(p *store.MeasuredTrace) place { return place{p.StreamCreated, p.Sequence} })
	return &pointCheck{traceCheck: t, rows: rows}, err
}

// at returns the points at a place of the stream.
func (c *pointCheck) at(p place) ([]*store.MeasuredTrace, error) {
	if err := c.rows.before(p, c.unmatched); err != nil {
		return nil, err
	}
	return c.rows.take(p)
}

// refused reports points of a message that is an invalid trace: it must have none.
func (c *pointCheck) refused(points []*store.MeasuredTrace, why error) error {
	for _, p := range points {
		if err := c.foreign(p, "its message is no valid trace (%v)", why); err != nil {
			return err
		}
	}
	return nil
}

// admitted compares the points with the current message, which is a valid trace.
func (c *pointCheck) admitted(m *stream.Message, points []*store.MeasuredTrace) error {
	measured := false
	for _, p := range points {
		if p.TraceDigest == c.trace.Digest && p.AgentID == c.trace.AgentID && p.TraceID == c.trace.TraceID {
			measured = true
			continue
		}
		if err := c.foreign(p, "the message at this place is trace %q of agent %q, %s", c.trace.TraceID, c.trace.AgentID, c.trace.Digest); err != nil {
			return err
		}
	}
	switch {
	case measured:
		c.count().Points++
	case m.Sequence > c.horizon.measured[m.Partition]:
		w := &c.waiting[m.Partition]
		if w.traces == 0 || m.Received.Before(w.oldest) {
			w.oldest = m.Received
		}
		w.traces++
		c.count().Unmeasured++
	default:
		c.missing = append(c.missing, c.about(m))
	}
	return nil
}

// unmatched reports a point without a message in the stream.
func (c *pointCheck) unmatched(p *store.MeasuredTrace) error {
	created := c.horizon.created
	earlier := p.StreamCreated.Before(created) && p.Received.Before(created)
	beyond := p.StreamCreated.Equal(created) && p.Sequence < c.first
	if earlier || beyond {
		return nil
	}
	return c.foreign(p, "the stream has no such message")
}

func (c *pointCheck) foreign(p *store.MeasuredTrace, format string, args ...any) error {
	return c.differ(Difference{Kind: PointForeign, AgentID: p.AgentID, SessionID: p.SessionID, TraceID: p.TraceID, Sequence: p.Sequence}, format, args...)
}

// look looks up the points that were not at their message's place. A message with the same bytes
// as an earlier one has the earlier one's point.
func (c *pointCheck) look(ctx context.Context) error {
	for messages := range slices.Chunk(c.missing, lookAtOnce) {
		measured, err := c.Store.MeasuredDigests(ctx, digestsOf(messages))
		if err != nil {
			return err
		}
		for i := range messages {
			m := &messages[i]
			if measured[m.Digest] || c.expired(m.AgentID, m.Received) {
				continue
			}
			if err := c.differ(m.difference(PointMissing), "drift has acknowledged the trace, and it has no drift point"); err != nil {
				return err
			}
		}
	}
	c.missing = nil
	return nil
}

// finish checks the remaining points and messages.
func (c *pointCheck) finish(ctx context.Context) error {
	if err := c.rows.rest(c.unmatched); err != nil {
		return err
	}
	if err := c.look(ctx); err != nil {
		return err
	}
	for partition, w := range c.waiting {
		if w.traces == 0 || c.Now.Sub(w.oldest) < overdueAfter {
			continue
		}
		if !c.horizon.measuring {
			c.skip("drift points: no drift stage has ever acknowledged a trace here")
			break
		}
		if err := c.differ(Difference{Kind: PointOverdue, Sequence: c.horizon.measured[partition]},
			"drift has acknowledged nothing of partition %d beyond this sequence: %d traces wait, the oldest was received %s",
			partition, w.traces, w.oldest.UTC().Format(time.RFC3339)); err != nil {
			return err
		}
	}
	return nil
}
