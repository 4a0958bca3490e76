package drift

import (
	"cmp"
	"container/heap"
	"time"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// entry is one message of a partition, reduced to what the fold needs: the raw
// bytes are gone.
type entry struct {
	message stream.Message // slim: for its place in the stream and its ack
	bytes   int            // of the message
	refused bool           // not a trace that can be admitted: all below is empty

	sample  aapdrift.Sample
	session string
	series  *series
	id      fingerprint // of the trace id
	order   int64       // nanoseconds: the earlier of the trace's time and its arrival
	future  bool        // the trace is dated after its arrival

	since    mark // where the partition was when the entry came
	released bool
}

// before is the order in which traces of one series are applied.
func (e *entry) before(other *entry) bool {
	return cmp.Or(cmp.Compare(e.order, other.order), cmp.Compare(e.message.Sequence, other.message.Sequence)) < 0
}

// mark is how far a partition has come.
type mark struct {
	clock    int64 // nanoseconds of broker time that passed since the worker began
	messages int   // since the worker began
	bytes    int   // of these
}

// patience is how far a partition goes on before a trace is due. Each bound
// depends on the stream alone, so that a replay comes to the same order; the
// last two keep what waits in bounds when a burst comes within the first.
type patience struct {
	lateness time.Duration
	messages int
	bytes    int
}

func (p patience) over(since, now mark) bool {
	return now.clock-since.clock >= int64(p.lateness) ||
		now.messages-since.messages >= p.messages ||
		now.bytes-since.bytes >= p.bytes
}

// queue holds the traces of a partition back until they are due, and releases
// them, series by series, in order. It is pure: time comes with the messages.
type queue struct {
	patience patience
	now      mark
	came     int64    // the clock when the newest message came
	newest   int64    // broker time of that message; 0 before the first
	arrivals []*entry // in the order of the stream; the first one is not released
	waiting  int      // entries that are not released
}

// advance notes that a message of that many bytes has come at a broker time. Where the
// broker's clock was set back no time has passed: the clock here never goes back.
func (q *queue) advance(received int64, bytes int) {
	q.now.messages++
	q.now.bytes += bytes
	if q.newest != 0 {
		q.pass(time.Duration(received - q.newest))
	}
	q.newest, q.came = received, q.now.clock
}

// pass notes how much time has passed since the newest message came, and that nothing
// older will come.
func (q *queue) pass(since time.Duration) { q.now.clock = max(q.now.clock, q.came+int64(since)) }

// add holds back an entry that came just now.
func (q *queue) add(e *entry) {
	e.since = q.now
	q.arrivals = append(q.arrivals, e)
	q.waiting++
	heap.Push(&e.series.waiting, e)
}

// release returns the next entry to be applied, nil when none is due. With a due
// entry come all of its series that stand before it.
func (q *queue) release() *entry {
	if len(q.arrivals) == 0 || !q.patience.over(q.arrivals[0].since, q.now) {
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

// Push appends x, an *entry.
func (h *byOrder) Push(x any) { *h = append(*h, x.(*entry)) }

// Pop removes the last entry.
func (h *byOrder) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}
