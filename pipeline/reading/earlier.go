package reading

import (
	"context"
	"time"

	"github.com/plumbline/plumbline/schema"
)

const (
	// lookupsAtOnce is how many look-ups for ingest run at a time. Further ones are left out.
	lookupsAtOnce = 2
	// lookupPause is how long nothing is looked up after a look-up failed or took too long.
	lookupPause = 10 * time.Second
	// lookupLinger is how long a look-up of few lines waits for those of other requests. They share one
	// query: a query costs the database some milliseconds, also if it is for ten lines. A publisher waits
	// that much longer for its answer, so it must be short.
	lookupLinger = 20 * time.Millisecond
	// lookupLines is the number of lines from which a look-up is not worth waiting for more.
	lookupLines = 500
)

// lookup is one query for the lines of one or more requests.
type lookup struct {
	at      []time.Time
	digests []schema.Digest
	done    chan struct{} // closed when found is known
	found   map[schema.Digest]uint64
}

// Sequences returns, for traces by their event times and digests, the sequence in stream TRACES at
// which each may be stored, or 0. Nothing may rest on it until the broker has confirmed it. It
// answers within lookupLinger and the configured time, and at once, with zeros, if it has no database,
// or for a while after a look-up that failed.
func (s *Service) Sequences(ctx context.Context, at []time.Time, digests []schema.Digest) []uint64 {
	sequences := make([]uint64, len(digests))
	if s.stored == nil || s.cfg.DuplicateLookup == 0 || time.Now().UnixNano() < s.paused.Load() {
		return sequences
	}
	q, first := s.join(at, digests)
	if first { // this request makes the query, for those that joined meanwhile, too
		if len(digests) < lookupLines {
			time.Sleep(lookupLinger)
		}
		s.answer(context.WithoutCancel(ctx), q)
	}
	select {
	case <-q.done:
	case <-ctx.Done():
		return sequences
	}
	for i := range digests {
		sequences[i] = q.found[digests[i]]
	}
	return sequences
}

// join adds lines to the look-up that waits, or to a new one, of which the request is the first.
func (s *Service) join(at []time.Time, digests []schema.Digest) (q *lookup, first bool) {
	s.joining.Lock()
	defer s.joining.Unlock()
	if q = s.waiting; q == nil || len(q.digests) >= lookupLines {
		q, first = &lookup{done: make(chan struct{})}, true
		s.waiting = q
	}
	q.at, q.digests = append(q.at, at...), append(q.digests, digests...)
	return q, first
}

// answer makes the query, unless too many are in progress. Afterwards nobody joins.
func (s *Service) answer(ctx context.Context, q *lookup) {
	defer close(q.done)
	s.joining.Lock()
	if s.waiting == q {
		s.waiting = nil
	}
	s.joining.Unlock()
	select {
	case s.lookups <- struct{}{}:
		defer func() { <-s.lookups }()
	default:
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.DuplicateLookup)
	defer cancel()
	found, err := s.stored(ctx, q.at, q.digests)
	if err != nil {
		s.paused.Store(time.Now().Add(lookupPause).UnixNano())
		s.log.Debug("earlier copies of lines were not looked up", "error", err, "next", lookupPause)
		return
	}
	q.found = found
}
