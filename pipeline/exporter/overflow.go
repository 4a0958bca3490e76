package exporter

import (
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// leastKept is how many receipts of a session are kept in memory, even where the next parts need
// fewer. The more are kept, the less often the others must be read again.
const leastKept = 100_000

// keepReceipts returns how many receipts of one session the index keeps, or up to a quarter more.
// A session may be of any length.
func (c *Config) keepReceipts() int { return max(leastKept, 4*c.RotateRows) }

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

// widen extends the ranges of times and sequences in a session's row by the receipts left out.
func (o *overflow) widen(row *store.Session) {
	if o.receipts == 0 {
		return
	}
	row.LastSequence = o.highest
	if o.first.Before(row.FirstEvent) {
		row.FirstEvent = o.first
	}
	if o.last.After(row.LastEvent) {
		row.LastEvent = o.last
	}
}

// add adds a receipt, or leaves it out if its sequence is above the lowest one left out.
func (s *openSession) add(r *schema.Receipt) {
	s.highest, s.ended = max(s.highest, r.Sequence), s.ended || r.End
	if !s.reaches(r.Sequence) {
		s.overflow.add(r)
		return
	}
	r.AgentID, r.SessionID = s.key.AgentID, s.key.SessionID // one copy of the names
	s.receipts, s.bytes = append(s.receipts, *r), s.bytes+recordBytes(r)
	if len(s.receipts) > s.keep+s.keep/4 {
		s.trim()
	}
}

// trim leaves out the receipts with the highest sequences where there are too many. Repeated ones
// do not count.
func (s *openSession) trim() {
	s.compact(0)
	for len(s.receipts) > s.keep {
		last := len(s.receipts) - 1
		s.overflow.add(&s.receipts[last])
		s.bytes -= recordBytes(&s.receipts[last])
		s.receipts = s.receipts[:last]
	}
}

// whole reports whether no receipt was left out.
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
		delete(x.sessions, s.key)
	}
}
