package exporter

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// openSession is an open session with its receipts of one stream TRACES that are not known to be in a
// bundle. Of a long session it keeps those with the lowest sequences. A session that went on in a new
// stream has several: a part holds traces of one stream, and those of the earlier stream are sealed first.
type openSession struct {
	key        store.SessionKey
	stream     int64            // when that stream was created, in Unix nanoseconds; unknownStream
	followed   bool             // a later stream has receipts of the session, too
	receipts   []schema.Receipt // in order of arrival; may contain repeated ones
	bytes      int64            // total size of their records
	keep       int              // how many receipts are kept before any is left out
	overflow   overflow         // summary of the receipts left out
	from       uint64           // in RECEIPTS: no earlier message has a receipt of receipts or overflow
	short      bool             // its plan needs some of those left out
	fixed      bool             // that plan is in the bucket and must be carried out once they have been read again
	highest    uint64           // highest sequence that has a receipt
	ended      bool             // a trace ended the session
	requested  bool             // sealing was requested,
	through    uint64           // to be done once all traces up to this sequence have receipts
	message    uint64           // in RECEIPTS: the first message with one of the receipts
	first      time.Time        // broker time of that message
	last       time.Time        // broker time of the newest
	scheduled  time.Time        // the first scheduled time after first; zero until computed
	heldUntil  time.Time        // it cannot be sealed, and is not tried again before this time
	held       string           // the reason as last reported
	rowVersion uint64           // of its row in table sessions that this process wrote last; 0: none
}

// streamKey names what an openSession has.
type streamKey struct {
	store.SessionKey
	stream int64
}

// unknownStream stands for an earlier stream TRACES whose receipts do not name it, because a verifier of an
// earlier version wrote them.
const unknownStream = 0

// index is the state that is folded from stream RECEIPTS.
type index struct {
	sessions map[streamKey]*openSession
	created  time.Time // of the current stream TRACES
	streams  []int64   // the streams that messages named
	settled  int       // how many of streams were named before created was read: they are not later than it
	keep     int       // how many receipts of a session are kept
	held     int       // sessions whose heldUntil is set
	position uint64    // the RECEIPTS sequence that was folded last
	newest   time.Time // broker time of that message
	asked    time.Time // broker time of the last answer
}

func newIndex(keep int) *index {
	return &index{sessions: map[streamKey]*openSession{}, keep: keep}
}

func (x *index) fold(m *stream.Message, receipts []schema.Receipt, end *wire.EndRequest) {
	x.position, x.newest = m.Sequence, m.Received
	for i := range receipts {
		r := &receipts[i]
		x.session(store.SessionKey{AgentID: r.AgentID, SessionID: r.SessionID}, x.streamOf(r.Stream, m), m).add(r)
	}
	if end != nil {
		key := store.SessionKey{AgentID: end.AgentID, SessionID: end.SessionID}
		s := x.session(key, x.streamOf(end.Stream, m), m)
		s.through = max(s.through, end.ThroughSequence)
		s.requested = true
		for other := range x.others(s) { // its sequence says nothing about their streams
			other.requested = true
		}
	}
}

func (x *index) session(key store.SessionKey, of int64, m *stream.Message) *openSession {
	if !slices.Contains(x.streams, of) {
		x.streams = append(x.streams, of)
	}
	s := x.sessions[streamKey{key, of}]
	if s == nil {
		s = &openSession{key: key, stream: of, keep: x.keep, message: m.Sequence, from: m.Sequence, first: m.Received}
		x.sessions[streamKey{key, of}] = s
	}
	s.last = m.Received
	return s
}

// streamOf returns the stream of what a message names. A message that names none is of an earlier version. Its
// stream is the current one, unless the message is older than that.
func (x *index) streamOf(named int64, m *stream.Message) int64 {
	if named == 0 && !m.Received.Before(x.created) {
		return x.created.UnixNano()
	}
	return named
}

// others yields the same session in other streams.
func (x *index) others(s *openSession) iter.Seq[*openSession] {
	return func(yield func(*openSession) bool) {
		for _, of := range x.streams {
			if other := x.sessions[streamKey{s.key, of}]; other != nil && other != s && !yield(other) {
				return
			}
		}
	}
}

// past reports whether a stream no longer exists. The times of creation alone do not tell: the broker's clock may
// have been set back.
func (x *index) past(of int64) bool {
	return of != x.created.UnixNano() && !slices.Contains(x.streams[x.settled:], of)
}

// precedes reports whether a stream is earlier than another one.
func (x *index) precedes(a, b int64) bool {
	switch pastA, pastB := x.past(a), x.past(b); {
	case a == b:
		return false
	case pastA && pastB:
		return a < b
	case pastA || pastB:
		return pastA
	}
	return a == x.created.UnixNano() // b was created since
}

// isOf reports whether a time of creation is that of the session's stream.
func (x *index) isOf(s *openSession, created time.Time) bool {
	of := created.UnixNano()
	return of == s.stream || s.stream == unknownStream && of != x.created.UnixNano()
}

// floor returns the sequence up to which a session may be sealed. floor is that of the current stream.
// Nothing follows in a stream that no longer exists. What was created since is for the next round.
func (x *index) floor(s *openSession, floor uint64) uint64 {
	switch {
	case s.stream == x.created.UnixNano():
		return floor
	case x.past(s.stream):
		return math.MaxUint64
	}
	return 0
}

// follows reports whether a session waits until what it has in an earlier stream is sealed. It also sets
// followed.
func (x *index) follows(s *openSession) (follows bool) {
	s.followed = false
	if len(x.streams) == 1 { // as nearly always
		return false
	}
	for other := range x.others(s) {
		if x.precedes(other.stream, s.stream) {
			follows = true
		} else {
			s.followed = s.followed || len(other.receipts) > 0 || !other.whole()
		}
	}
	return follows
}

// covered returns the highest sequence of the session's stream that parts contain. last is the record of
// the session. Whatever is left of an earlier stream than the last part's is in parts, too, as streams are sealed in order.
func (x *index) covered(s *openSession, last *seal.Record) uint64 {
	switch {
	case last.State == "":
		return 0
	case x.isOf(s, last.StreamCreated):
		return last.Covered(last.StreamCreated)
	case x.precedes(s.stream, last.StreamCreated.UnixNano()):
		return math.MaxUint64
	}
	return 0
}

// clock returns broker time: the time of the newest message or, when no message arrives, the time
// of the broker's last answer, less a margin for servers of a cluster whose clocks differ. If the
// newest message is dated after the last answer by more than the margin, the broker's clock was
// set back since, and the answer counts.
func (x *index) clock() time.Time {
	const margin = 5 * time.Second
	idle := x.asked.Add(-margin)
	if idle.After(x.newest) || x.newest.Sub(x.asked) > margin {
		return idle
	}
	return x.newest
}

// due returns the reason to seal a session at a broker time, "" if it is not due. Only traces
// with a sequence up to floor may be sealed. It does not depend on this machine's wall clock.
func (s *openSession) due(cfg *Config, at schedules, now time.Time, floor uint64) string {
	if s.last.After(now) { // the broker's clock was set back: otherwise the session would be idle only after that much longer
		if s.first.After(now) {
			s.first = now
		}
		s.last = now
	}
	if len(s.receipts) >= cfg.RotateRows || s.bytes > cfg.RotateBytes {
		s.compact(0) // receipts that a verifier repeated do not count
	}
	switch {
	case time.Now().Before(s.heldUntil) || s.through > floor:
		return ""
	case s.fixed || len(s.receipts) >= cfg.RotateRows || s.bytes > cfg.RotateBytes:
		return seal.ReasonRotation
	case s.highest > floor:
		return ""
	case s.ended:
		return seal.ReasonEnded
	case s.requested:
		return seal.ReasonRequested
	case s.followed:
		return seal.ReasonRotation
	case now.Sub(s.last) >= cfg.Idle:
		return seal.ReasonIdle
	case s.met(at, now):
		return seal.ReasonSchedule
	case now.Sub(s.first) >= cfg.RotateAge:
		return seal.ReasonRotation
	}
	return ""
}

// met reports whether a scheduled time has passed since the session was opened.
func (s *openSession) met(all schedules, now time.Time) bool {
	if len(all) == 0 {
		return false
	}
	if s.scheduled.IsZero() {
		s.scheduled = all.after(s.first)
	}
	return !s.scheduled.IsZero() && !s.scheduled.After(now)
}

// compact removes the receipts up to the sequence covered, which are in bundles, and repeated
// ones. It sorts the others by sequence.
func (s *openSession) compact(covered uint64) {
	slices.SortFunc(s.receipts, func(a, b schema.Receipt) int { return cmp.Compare(a.Sequence, b.Sequence) })
	s.receipts = slices.CompactFunc(s.receipts, func(a, b schema.Receipt) bool { return a.Sequence == b.Sequence })
	s.receipts, s.bytes = slices.Delete(s.receipts, 0, s.until(covered)), 0
	for i := range s.receipts {
		s.bytes += recordBytes(&s.receipts[i])
	}
	s.ended = s.ended && (s.overflow.ended || slices.ContainsFunc(s.receipts, func(r schema.Receipt) bool { return r.End }))
}

// next returns how many receipts of a compacted session the next part takes, and whether they
// fill the part. A single record of any size fits.
func (s *openSession) next(cfg *Config) (n int, full bool) {
	bytes := int64(0)
	for ; n < len(s.receipts); n++ {
		bytes += recordBytes(&s.receipts[n])
		if n == cfg.RotateRows || n > 0 && bytes > cfg.RotateBytes {
			return n, true
		}
	}
	return n, n == cfg.RotateRows
}

// unsaidBytes is the assumed size of a record whose receipt does not state it.
const unsaidBytes = 4 << 10

func recordBytes(r *schema.Receipt) int64 {
	if r.Bytes == 0 {
		return unsaidBytes
	}
	return int64(r.Bytes)
}

// until returns how many receipts of a compacted session have a sequence up to cut.
func (s *openSession) until(cut uint64) int {
	return sort.Search(len(s.receipts), func(i int) bool { return s.receipts[i].Sequence > cut })
}

// checkpoint returns the RECEIPTS sequence at which a later fold must begin.
func (x *index) checkpoint() uint64 {
	from := x.position + 1
	for _, s := range x.sessions {
		from = min(from, s.message)
	}
	return from
}

// leastKept is how many receipts of a session are kept in memory, or up to a quarter more, even
// where the next parts need fewer. A session may be of any length. The more are kept, the less
// often the others must be read again.
const leastKept = 100_000

// overflow summarises the receipts of a session that the index does not keep. All of them have a
// sequence of lowest or above, and all kept receipts are below: the kept ones are complete up to
// there.
type overflow struct {
	receipts    int // a repeated one counts each time
	lowest      uint64
	highest     uint64
	ended       bool      // one of them ends the session
	first, last time.Time // the extent of their event times
}

func (o *overflow) add(r *schema.Receipt) {
	if o.receipts == 0 || r.Sequence < o.lowest {
		o.lowest = r.Sequence
	}
	if o.receipts == 0 || r.EventTime.Before(o.first) {
		o.first = r.EventTime
	}
	if o.receipts == 0 || r.EventTime.After(o.last) {
		o.last = r.EventTime
	}
	o.highest, o.ended = max(o.highest, r.Sequence), o.ended || r.End
	o.receipts++
}

// add adds a receipt, or leaves it out if its sequence is above the lowest one left out. Where
// there are too many, it leaves out those with the highest sequences. Repeated ones do not count.
func (s *openSession) add(r *schema.Receipt) {
	s.highest, s.ended = max(s.highest, r.Sequence), s.ended || r.End
	if !s.reaches(r.Sequence) {
		s.overflow.add(r)
		return
	}
	r.AgentID, r.SessionID = s.key.AgentID, s.key.SessionID // one copy of the names
	s.receipts, s.bytes = append(s.receipts, *r), s.bytes+recordBytes(r)
	if len(s.receipts) <= s.keep+s.keep/4 {
		return
	}
	s.compact(0)
	for len(s.receipts) > s.keep {
		last := len(s.receipts) - 1
		s.overflow.add(&s.receipts[last])
		s.bytes -= recordBytes(&s.receipts[last])
		s.receipts = s.receipts[:last]
	}
}

func (s *openSession) whole() bool { return s.overflow.receipts == 0 }

// reaches reports whether no receipt up to a sequence was left out.
func (s *openSession) reaches(sequence uint64) bool {
	return s.whole() || sequence < s.overflow.lowest
}

// lacks reports whether the next part of a session needs receipts that were left out.
func (s *openSession) lacks(cfg *Config) bool {
	if s.whole() {
		return false
	}
	s.compact(0)
	_, full := s.next(cfg)
	return s.short || !full
}

// closeEmpty removes a session from the index if it has no receipts left.
func (x *index) closeEmpty(s *openSession) {
	if len(s.receipts) == 0 && s.whole() {
		delete(x.sessions, streamKey{s.key, s.stream})
	}
}
