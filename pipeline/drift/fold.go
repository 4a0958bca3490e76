package drift

import (
	"time"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// Statuses of a point that was not applied, beside those of aap/drift.
const (
	statusLate     aapdrift.Status = "late"     // older than what is applied
	statusConflict aapdrift.Status = "conflict" // another content of a trace id that is used
)

// fold applies the messages of one partition. It does no I/O and reads no clock;
// it is for one goroutine at a time.
type fold struct {
	partition   int
	created     time.Time // of the stream
	params      aapdrift.Params
	pins        Pins
	methodology string
	retainUntil func(agentID string, received time.Time) time.Time

	queue    queue
	courses  map[courseKey]*course
	waiting  map[identity]fingerprint // content of each trace in the queue
	position uint64                   // sequence of the newest message
	out      yield
	changed  []*course // since the last yield
}

type courseKey struct{ agent, card string }

// identity is a trace id within a course.
type identity struct {
	course *course
	id     fingerprint
}

// yield is what a fold has brought forth: all of it is made durable, then the
// messages are acknowledged.
type yield struct {
	baselines  []store.DriftBaseline
	points     []store.DriftPoint
	alerts     []store.DriftAlert
	states     []store.DriftState
	settled    []stream.Message
	refused    int
	duplicates int
}

// join adds what another fold has brought forth.
func (y *yield) join(other *yield) {
	y.baselines = append(y.baselines, other.baselines...)
	y.points = append(y.points, other.points...)
	y.alerts = append(y.alerts, other.alerts...)
	y.states = append(y.states, other.states...)
	y.settled = append(y.settled, other.settled...)
	y.refused += other.refused
	y.duplicates += other.duplicates
}

func newFold(partition int, created time.Time, rules *Rules, pins Pins, retainUntil func(string, time.Time) time.Time) *fold {
	return &fold{
		partition: partition, created: created, retainUntil: retainUntil, pins: pins,
		params: rules.params(), methodology: rules.methodology(),
		queue:   queue{patience: rules.patience()},
		courses: map[courseKey]*course{},
		waiting: map[identity]fingerprint{},
	}
}

// resume continues from stored states.
func (f *fold) resume(rows []store.DriftState) error {
	for i := range rows {
		c, err := resume(&rows[i])
		if err != nil {
			return err
		}
		f.enroll(c)
	}
	return nil
}

// enroll makes a course known, and sets its pin.
func (f *fold) enroll(c *course) {
	if pin, ok := f.pins[courseKey{c.agent, c.card}]; ok {
		c.state.Pin(pin.Baseline.Baseline)
	}
	f.courses[courseKey{c.agent, c.card}] = c
}

// receive takes the next message. One that came before since the worker began
// is acknowledged again, or is still in hand.
func (f *fold) receive(e *entry) {
	first := e.message.Sequence > f.position
	if first {
		f.position = e.message.Sequence
		f.queue.advance(e.message.Received.UnixNano(), e.bytes)
		f.release()
	}
	switch {
	case e.refused && first:
		f.out.refused++
		fallthrough
	case e.refused:
		f.out.settled = append(f.out.settled, e.message)
	default:
		f.admit(e, first)
	}
}

// admit finds a place for a trace.
func (f *fold) admit(e *entry, first bool) {
	c := f.courseOf(e)
	if e.message.Received.UnixNano() < c.last { // the broker's clock was set back: what arrives keeps its place of arrival
		e.order = c.newest()
	}
	content, known := f.content(c, e.id)
	switch {
	case !first && c.waits(e.message.Sequence): // the entry in hand will be acknowledged
	case !first, c.names(e.message.Sequence):
		f.out.settled = append(f.out.settled, e.message)
	case known && content == fingerprintOfDigest(e.sample.Digest):
		f.out.duplicates++
		f.settle(e)
	case known:
		f.pass(e, statusConflict)
	case e.order < c.last:
		f.pass(e, statusLate)
	default:
		f.waiting[identity{c, e.id}] = fingerprintOfDigest(e.sample.Digest)
		f.queue.add(e)
	}
}

// courseOf finds the course of a trace, and shares its strings.
func (f *fold) courseOf(e *entry) *course {
	key := courseKey{e.sample.AgentID, e.sample.CardID}
	c := f.courses[key]
	if c == nil {
		c = &course{agent: key.agent, card: key.card}
		f.enroll(c)
	}
	e.course, e.sample.AgentID, e.sample.CardID = c, c.agent, c.card
	return c
}

// content returns what waits, or was applied lately, under a trace id.
func (f *fold) content(c *course, id fingerprint) (fingerprint, bool) {
	if content, ok := f.waiting[identity{c, id}]; ok {
		return content, true
	}
	return c.recent.content(id)
}

// dueAfter reports whether a trace waits that is due when nothing has come for so long.
func (f *fold) dueAfter(quiet time.Duration) bool {
	now := f.queue.now
	now.clock = max(now.clock, f.queue.came+int64(quiet))
	return len(f.queue.arrivals) > 0 && f.queue.patience.over(f.queue.arrivals[0].since, now)
}

// newest is the broker time of the newest message; zero before the first.
func (f *fold) newest() (at time.Time) {
	if f.queue.newest != 0 {
		at = time.Unix(0, f.queue.newest)
	}
	return at
}

// idle notes that nothing has come for so long.
func (f *fold) idle(quiet time.Duration) {
	f.queue.pass(quiet)
	f.release()
}

// release applies what is due.
func (f *fold) release() {
	for e := f.queue.release(); e != nil; e = f.queue.release() {
		f.apply(e)
	}
}

// apply makes a trace the next step of its course.
func (f *fold) apply(e *entry) {
	c := e.course
	delete(f.waiting, identity{c, e.id})
	c.recent.add(mention{e.id, fingerprintOfDigest(e.sample.Digest)})
	if !e.future {
		c.last = e.order
	}
	step := c.state.Step(e.sample, f.params)
	point := f.point(e, step.Status)
	point.Streak, point.BaselineID = uint32(step.Streak), step.Baseline
	if step.Status != aapdrift.StatusBaseline {
		point.Similarity = &step.Similarity
	}
	f.out.points = append(f.out.points, point)
	if step.Formed != nil {
		f.out.baselines = append(f.out.baselines, baselineRow(courseKey{c.agent, c.card}, step.Formed, point.EventTime, point.Received))
	}
	if step.Alert != nil {
		step.Alert.Methodology = f.methodology
		f.out.alerts = append(f.out.alerts, store.DriftAlert{
			DriftAlert: *step.Alert, Received: point.Received, RetainUntil: time.Time(point.RetainUntil),
		})
	}
	f.settle(e)
}

// pass settles a trace that is not applied.
func (f *fold) pass(e *entry, status aapdrift.Status) {
	f.out.points = append(f.out.points, f.point(e, status))
	f.settle(e)
}

func (f *fold) settle(e *entry) {
	if e.course.settle(e.message.Sequence) {
		f.changed = append(f.changed, e.course)
	}
	f.out.settled = append(f.out.settled, e.message)
}

// take returns what was brought forth since the last time, with the states that
// name all of it.
func (f *fold) take() (yield, error) {
	out := f.out
	f.out = yield{ // the next one will be about as large
		points:  make([]store.DriftPoint, 0, len(out.points)),
		settled: make([]stream.Message, 0, len(out.settled)),
	}
	out.states = make([]store.DriftState, len(f.changed))
	for i, c := range f.changed {
		row, err := c.snapshot(f.position)
		if err != nil {
			return yield{}, err
		}
		row.StreamCreated, row.Partition = f.created, uint16(f.partition)
		out.states[i] = row
	}
	f.changed = f.changed[:0]
	return out, nil
}

// oldest is when the oldest message in hand was received; zero when there is none.
func (f *fold) oldest() (at time.Time) {
	if len(f.out.settled) > 0 {
		at = f.out.settled[0].Received
	}
	if len(f.queue.arrivals) > 0 {
		if waiting := f.queue.arrivals[0].message.Received; at.IsZero() || waiting.Before(at) {
			at = waiting
		}
	}
	return at
}
