package drift

import (
	"context"

	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// A copy of a trace may arrive at any time: the same bytes under the same time. It must not be applied again. A series
// knows the traces that it applied last (recent). Of the others:
//
//   - A trace with a later time than all that the series has applied is no copy. Nearly all traces are of this kind.
//   - A trace that is late is not used, whether it is a copy or not. Nearly all copies are of this kind.
//   - Any other trace is doubtful: it may be a copy of one that was dated ahead of its arrival, of one of the newest time,
//     or of any one if the broker's clock was set back. It is a copy if an earlier message has its point.
//
// The points are in the database, except for those that the fold has not handed over as durable (measured). ADR 3 says why.

// doubtful appends the doubtful ones of the next entries to of, except those whose points are not stored yet: it marks these as
// copies. The caller must look up the points of the others, and mark those that have one of an earlier message, before it
// passes the entries to receive. An entry of a trace that is among these entries is recognised by receive.
func (f *fold) doubtful(of, entries []*entry) []*entry {
	clock := f.clock
	for _, e := range entries {
		received := e.message.Received.UnixNano()
		back := received < clock // by the time the entry is received, it may keep its order of arrival
		clock = max(clock, received)
		if e.refused || e.ending != nil {
			continue
		}
		c := f.series[e.key()]
		switch {
		case c == nil || e.time() > c.latest:
		case e.order < c.last && received >= c.last && !back: // late
		case c.names(e.message.Sequence):
		case f.measured(e.sample.Digest):
			e.copied = true
		default:
			of = append(of, e)
		}
	}
	return of
}

// isCopy reports whether an entry is a copy of a trace that its series has finished.
func (f *fold) isCopy(e *entry) bool {
	return e.time() <= e.series.latest && (e.copied || f.measured(e.sample.Digest))
}

// measured reports whether a trace has a point that may not be stored yet.
func (f *fold) measured(trace schema.Digest) bool {
	if _, found := f.unstored[trace]; found {
		return true
	}
	_, found := f.storing[trace]
	return found
}

// time returns the trace's own time.
func (e *entry) time() int64 { return e.sample.EventTime.UnixNano() }

// findCopies marks the copies among the entries of the slice, with one query for all partitions. Only this goroutine
// applies traces, so none gets a point between the query and the slice.
func (r *reading) findCopies(ctx context.Context) error {
	r.doubtful = r.doubtful[:0]
	for _, p := range r.owned {
		p.mu.Lock()
		r.doubtful = p.fold.doubtful(r.doubtful, p.entries)
		p.mu.Unlock()
	}
	if len(r.doubtful) == 0 {
		return nil
	}
	defer clear(r.doubtful)
	traces := make([]store.TraceTime, len(r.doubtful))
	for i, e := range r.doubtful {
		traces[i] = store.TraceTime{Digest: e.sample.Digest, EventTime: e.sample.EventTime}
	}
	var first map[schema.Digest]uint64
	err := r.env.Retry.Do(ctx, "look up the points of traces that may be copies", func() (err error) {
		first, err = r.rows.FirstMeasured(ctx, r.source.StreamCreated(), traces)
		return err
	})
	if err != nil {
		return err
	}
	for _, e := range r.doubtful {
		e.copiedFrom(first)
	}
	return nil
}

// copiedFrom marks the entry as a copy if an earlier message has its point. After a crash later ones may have one, too: they are
// read again.
func (e *entry) copiedFrom(first map[schema.Digest]uint64) {
	sequence, found := first[e.sample.Digest]
	e.copied = found && sequence < e.message.Sequence
}
