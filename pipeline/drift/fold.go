package drift

import (
	"container/list"
	"strings"
	"time"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// Statuses of a point that was not applied, in addition to those of aap/drift.
const (
	statusLate     aapdrift.Status = "late"     // older than the last applied trace
	statusConflict aapdrift.Status = "conflict" // same trace id as an earlier trace, other content
)

// fold applies the messages of one partition. It does no I/O and reads no clock. It must be used
// by one goroutine at a time.
type fold struct {
	partition   int
	created     time.Time // of the stream
	params      aapdrift.Params
	pins        Pins
	methodology string
	retainUntil func(agentID string, received time.Time) time.Time

	queue    queue
	series   map[seriesKey]*series
	agents   map[string]*series         // the series of each agent that came into memory last
	waiting  map[identity]contentMark   // content of each trace in the queue
	unstored map[schema.Digest]struct{} // traces whose points were not taken yet
	storing  map[schema.Digest]struct{} // traces whose points were taken last, and may not be durable yet
	clock    int64                      // the greatest broker time of a message
	position uint64                     // sequence of the newest message
	out      batch
	changed  []*series            // series with finished messages since the last checkpoint
	taken    []*series            // series whose states are in that checkpoint, which is not durable yet
	resting  list.List            // series that may be evicted, the one that has rested longest first
	large    map[*series]struct{} // those of them that take more than mostAtRest
	decoded  []*series            // series with decoded content
	bytes    int                  // sizes of the series
	takes    uint64               // calls of take
	scratch  []byte               // for pack
	fault    error                // of open: nothing more may be taken
}

// seriesKey names a series.
type seriesKey = store.SeriesKey

// identity is a trace id within a series.
type identity struct {
	series *series
	id     fingerprint
}

// batch is the output of a fold. All of it is made durable, then the position is recorded.
type batch struct {
	baselines  []store.DriftBaseline
	points     []store.DriftPoint
	alerts     []store.DriftAlert
	loops      []store.LoopAlert
	states     []store.DriftState // only at a checkpoint
	through    uint64             // the position to record: every message up to it is finished; 0: none
	messages   int                // that are finished
	oldest     time.Time          // when the oldest of them was received; zero without one
	refused    int
	duplicates int
}

func (b *batch) empty() bool { return b.messages == 0 && len(b.states) == 0 && b.through == 0 }

// finish counts a finished message.
func (b *batch) finish(received time.Time) {
	if b.messages++; b.oldest.IsZero() || received.Before(b.oldest) {
		b.oldest = received
	}
}

func (b *batch) add(other *batch) {
	b.baselines = append(b.baselines, other.baselines...)
	b.points = append(b.points, other.points...)
	b.alerts = append(b.alerts, other.alerts...)
	b.loops = append(b.loops, other.loops...)
	b.states = append(b.states, other.states...)
	if other.messages > 0 {
		b.finish(other.oldest)
		b.messages += other.messages - 1
	}
	b.refused += other.refused
	b.duplicates += other.duplicates
}

// keptPoints is how many points' memory an emptied batch keeps, some 7 MB.
const keptPoints = 16_384

// reset empties the batch for reuse.
func (b *batch) reset() {
	points := b.points
	clear(points)
	if cap(points) > keptPoints {
		points = nil
	}
	*b = batch{points: points[:0]}
}

func newFold(partition int, created time.Time, rules *Rules, pins Pins, retainUntil func(string, time.Time) time.Time) *fold {
	return &fold{
		partition: partition, created: created, retainUntil: retainUntil, pins: pins,
		params: rules.params(), methodology: rules.methodology(),
		queue:    queue{rules: rules},
		series:   map[seriesKey]*series{},
		agents:   map[string]*series{},
		waiting:  map[identity]contentMark{},
		unstored: map[schema.Digest]struct{}{}, storing: map[schema.Digest]struct{}{},
		large: map[*series]struct{}{},
	}
}

// receive processes the next message. It queues a trace, or finishes it at once if it is a
// duplicate, conflicts, or comes too late. It ignores a message that was received before. A series
// that is not in memory has no stored state (see unknown), and a doubtful entry is marked if it is a copy (see doubtful).
func (f *fold) receive(e *entry) {
	if e.message.Sequence <= f.position {
		return
	}
	f.position = e.message.Sequence
	f.clock = max(f.clock, e.message.Received.UnixNano())
	f.queue.advance(e.message.Received.UnixNano(), e.bytes)
	f.release()
	if e.refused {
		f.out.refused++
		f.out.finish(e.message.Received)
		return
	}
	if e.ending != nil {
		f.receiveEnd(e)
		return
	}
	c := f.series[e.key()]
	if c == nil { // no message before this one is of the series
		c = &series{agent: strings.Clone(e.sample.AgentID), card: e.sample.CardID, applied: e.message.Sequence - 1}
		f.enroll(c)
	}
	f.wake(c)
	e.series = c
	e.sample.AgentID, e.sample.CardID = c.agent, c.card // one copy of the names
	// If the broker's clock was set back, arrivals keep their order of arrival.
	if e.message.Received.UnixNano() < c.last {
		e.order = c.newest()
	}
	content, known := f.waiting[identity{c, e.id}]
	if !known {
		content, known = c.recently(e.id)
	}
	switch {
	case c.names(e.message.Sequence):
		f.out.finish(e.message.Received)
	case known && content.fits(e.sample.Digest):
		f.out.duplicates++
		f.finish(e)
	case known:
		f.skip(e, statusConflict)
	case e.order < c.last:
		f.skip(e, statusLate)
	case f.isCopy(e):
		f.out.duplicates++
		f.finish(e)
	default:
		f.waiting[identity{c, e.id}] = markOf(e.sample.Digest)
		f.queue.add(e)
	}
	f.rest(c) // it got nothing new
}

// due returns the broker time at which the first waiting trace becomes due by its age; false if none
// waits.
func (f *fold) due() (at time.Time, waits bool) {
	if len(f.queue.arrivals) == 0 {
		return at, false
	}
	waited := f.queue.came - f.queue.arrivals[0].since.clock
	return time.Unix(0, f.queue.newest-waited).Add(f.queue.rules.Lateness), true
}

// pass tells the fold what time it is for the broker at least, and applies what is due. No message
// that is received before it may arrive later.
func (f *fold) pass(at time.Time) {
	if f.queue.newest != 0 {
		f.idle(at.Sub(time.Unix(0, f.queue.newest)))
	}
}

// idle advances the time during which nothing arrived, and applies what is due.
func (f *fold) idle(quiet time.Duration) {
	f.queue.pass(quiet)
	f.release()
}

// floor returns the sequence up to which every message is finished, of those up to read, which
// were received.
func (f *fold) floor(read uint64) uint64 {
	if len(f.queue.arrivals) > 0 {
		return f.queue.arrivals[0].message.Sequence - 1
	}
	return read
}

func (f *fold) release() {
	for e := f.queue.release(); e != nil; e = f.queue.release() {
		f.apply(e)
	}
}

// apply applies a trace as the next step of its series.
func (f *fold) apply(e *entry) {
	c := e.series
	c.reached = max(c.reached, e.order)
	if e.ending != nil {
		f.end(e)
		return
	}
	delete(f.waiting, identity{c, e.id})
	opened, err := f.open(c)
	if err != nil {
		f.fault = err
		return
	}
	opened.recent.add(e.id, markOf(e.sample.Digest))
	if !e.future {
		c.last = e.order
	}
	c.latest = max(c.latest, e.time(), e.order)
	e.sample.Order = time.Unix(0, e.order).UTC()
	step := opened.state.Step(e.sample, f.params)
	point := f.point(e, step.Status)
	point.Streak, point.BaselineID = uint32(step.Streak), step.Baseline
	if step.Status != aapdrift.StatusBaseline {
		similarity := step.Similarity // the point keeps 8 bytes, not the step
		point.Similarity = &similarity
	}
	f.measure(point)
	f.follow(e, &opened.loops, &point)
	if step.Formed != nil {
		f.out.baselines = append(f.out.baselines, baselineRow(c.key(), step.Formed, point.EventTime, point.Received))
	}
	if step.Alert != nil {
		alert := *step.Alert
		alert.Methodology = f.queue.rules.explained(alert.Methodology) // of its own mode: it may close a condition of another
		f.out.alerts = append(f.out.alerts, store.DriftAlert{
			DriftAlert: alert, Received: point.Received, RetainUntil: time.Time(point.RetainUntil),
		})
	}
	f.finish(e)
}

func (f *fold) skip(e *entry, status aapdrift.Status) {
	f.measure(f.point(e, status))
	f.finish(e)
}

func (f *fold) measure(point store.DriftPoint) {
	f.out.points = append(f.out.points, point)
	f.unstored[point.TraceDigest] = struct{}{}
}

func (f *fold) finish(e *entry) {
	f.list(e.series, e.message.Sequence)
	f.out.finish(e.message.Received)
}

// take appends the output since the last call to a batch. The output of the last call must be durable. At a checkpoint it
// has the states that list all messages finished so far: call stored when they are durable, and before the next checkpoint.
func (f *fold) take(all *batch, checkpoint bool) error {
	if f.fault != nil {
		return f.fault
	}
	all.add(&f.out)
	f.out.reset()
	f.storing, f.unstored = f.unstored, f.storing
	clear(f.unstored)
	if !checkpoint {
		return nil
	}
	for _, c := range f.changed {
		if err := f.pack(c); err != nil {
			return err
		}
		row := c.snapshot(f.position)
		row.StreamCreated, row.Partition = f.created, uint16(f.partition)
		all.states = append(all.states, row)
		c.storing = true
	}
	f.close()
	f.taken, f.changed = f.changed, make([]*series, 0, len(f.changed))
	return nil
}

// oldest returns the receive time of the oldest message that waits or is finished and not taken
// yet; zero when there is none.
func (f *fold) oldest() (at time.Time) {
	at = f.out.oldest
	if len(f.queue.arrivals) > 0 {
		if waiting := f.queue.arrivals[0].message.Received; at.IsZero() || waiting.Before(at) {
			at = waiting
		}
	}
	return at
}

// point returns the row of a trace's point, without the result of the comparison.
func (f *fold) point(e *entry, status aapdrift.Status) store.DriftPoint {
	return store.DriftPoint{
		AgentID:       e.series.agent,
		CardID:        e.series.card,
		TraceID:       e.sample.TraceID,
		TraceDigest:   e.sample.Digest,
		EngineVersion: aapdrift.EngineVersion,
		EventTime:     e.sample.EventTime,
		Received:      e.message.Received,
		RetainUntil:   store.RetainUntil(f.retainUntil(e.series.agent, e.message.Received)),
		StreamCreated: f.created,
		Sequence:      e.message.Sequence,
		SessionID:     e.session,
		Status:        string(status),
		Threshold:     f.params.SimilarityThreshold,
		Methodology:   f.methodology,
		Mode:          string(f.params.Mode),
	}
}

func baselineRow(of seriesKey, b *aapdrift.Formed, formed, received time.Time) store.DriftBaseline {
	row := store.DriftBaseline{
		AgentID: of.AgentID, CardID: of.CardID, BaselineID: b.ID, Mode: string(b.Mode), EngineVersion: aapdrift.EngineVersion,
		FormedAt: formed, Received: received, Traces: uint32(b.Tally.Traces),
		EscalationRate: b.Tally.EscalationRate(), Texts: uint32(b.Reasoning.Texts), SessionIDs: b.Sessions,
	}
	for _, t := range b.Traces {
		row.TraceIDs, row.TraceDigests = append(row.TraceIDs, t.TraceID), append(row.TraceDigests, t.Digest.String())
	}
	for _, f := range b.Features {
		row.Features, row.Weights = append(row.Features, f.Key), append(row.Weights, f.Weight)
	}
	return row
}
