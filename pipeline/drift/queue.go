package drift

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"time"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// entry is one message of a partition, reduced to what the fold needs. It does not hold the raw
// bytes.
type entry struct {
	message place
	bytes   int     // size of the message
	refused bool    // neither a valid trace nor a request: all fields below are empty
	ending  *ending // a request to end a session; nil for a trace

	sample  aapdrift.Sample // of a request only the agent
	session string
	act     session.Act
	series  *series
	id      fingerprint // of the trace id
	order   int64       // nanoseconds: the earlier of the trace's time and its arrival
	future  bool        // the trace is dated after its arrival
	copied  bool        // the trace has a point of an earlier message (see doubtful)

	since    mark // the partition's progress when the entry arrived
	released bool
}

// place is where a message lies in the stream. Many entries wait, so they hold nothing else of it.
type place struct {
	Sequence uint64
	Received time.Time
}

// before reports whether the entry is applied before another entry of the same series.
func (e *entry) before(other *entry) bool {
	return cmp.Or(cmp.Compare(e.order, other.order), cmp.Compare(e.message.Sequence, other.message.Sequence)) < 0
}

// mark is the progress of a partition.
type mark struct {
	clock    int64 // nanoseconds of broker time since the worker began
	messages int   // since the worker began
	bytes    int   // total size of these
}

// due reports whether a partition has progressed so far that a trace is due. Each bound depends on
// the stream alone, so a replay gives the same order. The last two bound the memory of waiting
// traces in a burst.
func (r *Rules) due(since, now mark) bool {
	return now.clock-since.clock >= int64(r.Lateness) ||
		now.messages-since.messages >= r.WaitingTraces ||
		now.bytes-since.bytes >= r.WaitingBytes
}

// queue holds the traces of a partition back until they are due, and releases them in order
// within each series. It is pure: time comes with the messages.
type queue struct {
	rules    *Rules
	now      mark
	came     int64    // the clock when the newest message arrived
	newest   int64    // broker time of that message; 0 before the first
	arrivals []*entry // in the order of the stream; the first one is always unreleased
	waiting  int      // entries that are not released
}

// advance records the arrival of a message of the given size at a broker time. If the broker's
// clock was set back no time has passed: the clock here never goes back.
func (q *queue) advance(received int64, bytes int) {
	q.now.messages++
	q.now.bytes += bytes
	if q.newest != 0 {
		q.pass(time.Duration(received - q.newest))
	}
	q.newest, q.came = received, q.now.clock
}

// pass records how much time has passed since the newest message arrived. The caller guarantees
// that nothing older will arrive.
func (q *queue) pass(since time.Duration) { q.now.clock = max(q.now.clock, q.came+int64(since)) }

// add holds back an entry that has just arrived.
func (q *queue) add(e *entry) {
	e.since = q.now
	q.arrivals = append(q.arrivals, e)
	q.waiting++
	heap.Push(&e.series.waiting, e)
}

// release returns the next entry to apply, nil when none is due. A due entry is preceded by all
// entries of its series that are ordered before it.
func (q *queue) release() *entry {
	if len(q.arrivals) == 0 || !q.rules.due(q.arrivals[0].since, q.now) {
		return nil
	}
	e := heap.Pop(&q.arrivals[0].series.waiting).(*entry)
	e.released = true
	q.waiting--
	for len(q.arrivals) > 0 && q.arrivals[0].released {
		q.arrivals[0] = nil
		q.arrivals = q.arrivals[1:]
	}
	return e
}

// byOrder is a heap of a series's entries (container/heap).
type byOrder []*entry

func (h byOrder) Len() int           { return len(h) }
func (h byOrder) Less(i, j int) bool { return h[i].before(h[j]) }
func (h byOrder) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

func (h *byOrder) Push(x any) { *h = append(*h, x.(*entry)) }

func (h *byOrder) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}

// Registry provides what drift needs from cards (cards.Registry).
type Registry interface {
	Lookup(ctx context.Context, cardID string) (*cards.Card, error)
	Relies() bool
	Knows(agentID string) bool
	KnowRetention(days map[string]uint32)
	RetainUntil(agentID string, received time.Time) time.Time
}

// reducer converts messages to entries. It reuses its memory and must be used by one goroutine.
type reducer struct {
	registry Registry
	decoder  schema.Decoder
	trace    schema.Trace
	acts     session.Acts
	facts    map[string]aapdrift.CardFacts        // facts of registered cards by id, which never change; at most maxFacts
	policies map[schema.Digest]aapdrift.CardFacts // facts that the cards of a policy share; at most maxPolicies
	read     map[string]struct{}                  // agents whose rows of cards are among facts; about maxFacts at most
}

func newReducer(registry Registry) *reducer {
	return &reducer{registry: registry, facts: map[string]aapdrift.CardFacts{}, policies: map[schema.Digest]aapdrift.CardFacts{}, read: map[string]struct{}{}}
}

// reduce returns the entry of m, without references to its bytes. What is neither a trace nor a request is a
// refused entry, not an error: the verifier stores it. An error is the registry's; the call is safe to retry.
func (r *reducer) reduce(ctx context.Context, m stream.Message) (*entry, error) {
	e := &entry{message: place{m.Sequence, m.Received}, bytes: len(m.Data)}
	if err := r.decoder.Admit(&r.trace, m.Agent, m.Data); err != nil {
		if _, refused := errors.AsType[*schema.Refusal](err); !refused {
			return nil, err
		}
		if end, requested := wire.EndOf(m.Agent, m.Data); requested {
			e.ending, e.session, e.sample.AgentID = new(ending), end.SessionID, end.AgentID
			return e, nil
		}
		e.refused = true
		return e, nil
	}
	facts, err := r.factsOf(ctx, r.trace.CardID)
	if err != nil {
		return nil, err
	}
	e.sample = aapdrift.SampleOf(&r.trace, facts)
	e.session = e.sample.Session
	e.act = r.acts.Of(&r.trace)
	e.id = fingerprintOf(e.sample.TraceID)
	e.future = r.trace.Timestamp.After(m.Received)
	e.order = min(r.trace.Timestamp.UnixNano(), m.Received.UnixNano())
	return e, nil
}
