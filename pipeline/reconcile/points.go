package reconcile

import (
	"context"
	"slices"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// overdueAfter is how long drift may take until it is done with a trace. Drift holds each trace back for its
// lateness, some seconds, and reads on as long as there are more.
const overdueAfter = 10 * time.Minute

// pointCheck compares the drift points with the messages of stream TRACES.
type pointCheck struct {
	*traceCheck
	rows    *cursor[store.MeasuredTrace]
	missing []message // to be looked up by digest
	waiting [subject.Partitions]waiting
}

// waiting counts the traces of a partition that drift is not done with.
type waiting struct {
	traces uint64
	oldest time.Time // receive time of the oldest
}

// admitted compares the points with the current message, which is a valid trace.
func (c *pointCheck) admitted(m *stream.Message, points []*store.MeasuredTrace) {
	measured := false
	for _, p := range points {
		if p.TraceDigest == c.trace.Digest && p.AgentID == c.trace.AgentID && p.TraceID == c.trace.TraceID {
			measured = true
			continue
		}
		c.foreign(p, "the message at this place is trace %q of agent %q, %s", c.trace.TraceID, c.trace.AgentID, c.trace.Digest)
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
}

// unmatched reports a point without a message in the stream.
func (c *pointCheck) unmatched(p *store.MeasuredTrace) {
	if !c.unstreamed(p.StreamCreated, p.Received, p.Sequence) {
		c.foreign(p, "the stream has no such message")
	}
}

func (c *pointCheck) foreign(p *store.MeasuredTrace, format string, args ...any) {
	c.differ(Difference{Kind: PointForeign, AgentID: p.AgentID, SessionID: p.SessionID, TraceID: p.TraceID, Sequence: p.Sequence}, format, args...)
}

// look looks up the points that were not at their message's place.
func (c *pointCheck) look(ctx context.Context) error {
	for messages := range slices.Chunk(c.missing, lookAtOnce) {
		measured, err := c.Store.MeasuredDigests(ctx, digestsOf(messages))
		if err != nil {
			return err
		}
		for i := range messages {
			if m := &messages[i]; !measured[m.Digest] && !c.expired(m.AgentID, m.Received) {
				c.differ(m.difference(PointMissing), "drift is done with the trace, and it has no drift point")
			}
		}
	}
	c.missing = nil
	return nil
}

// checkWaiting reports partitions whose traces have waited too long.
func (c *pointCheck) checkWaiting() {
	for partition, w := range c.waiting {
		if w.traces == 0 || c.Now.Sub(w.oldest) < overdueAfter {
			continue
		}
		if !c.horizon.measuring {
			c.skip("drift points: no drift stage was ever done with a trace here")
			return
		}
		c.differ(Difference{Kind: PointOverdue, Sequence: c.horizon.measured[partition]},
			"drift is done with nothing of partition %d beyond this sequence: %d traces wait, the oldest was received %s",
			partition, w.traces, w.oldest.UTC().Format(time.RFC3339))
	}
}
