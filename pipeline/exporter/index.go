package exporter

import (
	"cmp"
	"slices"
	"time"

	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// openSession is an open session: its receipts that no bundle is known to hold, of
// a long one those of the lowest sequences.
type openSession struct {
	key       store.SessionKey
	receipts  []schema.Receipt // in order of arrival; perhaps repeated
	bytes     int64            // of their records
	keep      int              // how many of them may be there before any is left out
	overflow  overflow         // what is known of those left out
	from      uint64           // of RECEIPTS: none before brought one of either
	short     bool             // its plan needs some of those left out,
	fixed     bool             // and is to be carried out once they are there
	highest   uint64           // sequence that was receipted
	ended     bool             // a trace said so
	requested bool             // sealing was asked for,
	through   uint64           // once all up to this sequence is receipted
	message   uint64           // of RECEIPTS: the first that brought one of the receipts
	first     time.Time        // broker time of that message
	last      time.Time        // broker time of the newest
	scheduled time.Time        // the first scheduled time after first; zero until it is asked for
	heldUntil time.Time        // it cannot be sealed: not looked at again before
	held      string           // why, as reported last
}

// index is the fold of stream RECEIPTS.
type index struct {
	sessions map[store.SessionKey]*openSession
	keep     int       // of a session's receipts
	position uint64    // the RECEIPTS sequence that was folded last
	newest   time.Time // broker time of that message
	asked    time.Time // broker time when it was asked last
}

func newIndex(keep int) *index {
	return &index{sessions: map[store.SessionKey]*openSession{}, keep: keep}
}

// fold adds what one message of stream RECEIPTS says.
func (x *index) fold(m *stream.Message, receipts []schema.Receipt, end *stream.EndRequest) {
	x.position, x.newest = m.Sequence, m.Received
	for i := range receipts {
		r := &receipts[i]
		x.session(store.SessionKey{AgentID: r.AgentID, SessionID: r.SessionID}, m).add(r)
	}
	if end != nil {
		s := x.session(store.SessionKey{AgentID: end.AgentID, SessionID: end.SessionID}, m)
		s.requested, s.through = true, max(s.through, end.ThroughSequence)
	}
}

func (x *index) session(key store.SessionKey, m *stream.Message) *openSession {
	s := x.sessions[key]
	if s == nil {
		s = &openSession{key: key, keep: x.keep, message: m.Sequence, from: m.Sequence, first: m.Received}
		x.sessions[key] = s
	}
	s.last = m.Received
	return s
}

// clock is broker time: that of the newest message, or when nothing comes that of the
// broker's last answer, less a margin for servers of a cluster whose clocks differ. A
// newest message that is dated after the answer is from before the broker's clock was set
// back.
func (x *index) clock() time.Time {
	const margin = 5 * time.Second
	idle := x.asked.Add(-margin)
	if idle.After(x.newest) || x.newest.Sub(x.asked) > margin {
		return idle
	}
	return x.newest
}

// due returns why a session is to be sealed at a broker time, "" if it is not. Everything
// that may be sealed has a sequence up to floor. No wall clock of this machine decides.
func (s *openSession) due(cfg *Config, at schedules, now time.Time, floor uint64) string {
	if s.last.After(now) { // the broker's clock was set back: the session would be idle for as long before it counts
		s.first, s.last = earlier(s.first, now), now
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
	case now.Sub(s.last) >= cfg.Idle:
		return seal.ReasonIdle
	case s.met(at, now):
		return seal.ReasonSchedule
	case now.Sub(s.first) >= cfg.RotateAge:
		return seal.ReasonRotation
	}
	return ""
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// compact drops the receipts up to the sequence covered, which bundles hold, and
// repeated ones; what is left is in order of sequence.
func (s *openSession) compact(covered uint64) {
	slices.SortFunc(s.receipts, func(a, b schema.Receipt) int { return cmp.Compare(a.Sequence, b.Sequence) })
	s.receipts = slices.CompactFunc(s.receipts, func(a, b schema.Receipt) bool { return a.Sequence == b.Sequence })
	kept := s.receipts[:0]
	for _, r := range s.receipts {
		if r.Sequence > covered {
			kept = append(kept, r)
		}
	}
	s.receipts, s.bytes = kept, 0
	for i := range kept {
		s.bytes += recordBytes(&kept[i])
	}
	s.ended = s.ended && (s.overflow.ended || slices.ContainsFunc(kept, func(r schema.Receipt) bool { return r.End }))
}

// next returns how many receipts the next part takes of a compacted session, and
// whether it is full with them. One record enters however large it is.
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

// unsaidBytes stands for the size of a record whose receipt does not tell it.
const unsaidBytes = 4 << 10

func recordBytes(r *schema.Receipt) int64 {
	if r.Bytes == 0 {
		return unsaidBytes
	}
	return int64(r.Bytes)
}

// until returns how many receipts have a sequence up to cut.
func (s *openSession) until(cut uint64) int {
	n := 0
	for n < len(s.receipts) && s.receipts[n].Sequence <= cut {
		n++
	}
	return n
}

// checkpoint is the RECEIPTS sequence from which a later fold must begin.
func (x *index) checkpoint() uint64 {
	from := x.position + 1
	for _, s := range x.sessions {
		from = min(from, s.message)
	}
	return from
}
