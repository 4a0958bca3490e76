package exporter

import (
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// leastKept is how many receipts of a session are in memory where fewer would do for
// the next parts: the more there are, the less often the others are read again.
const leastKept = 100_000

// keepReceipts is how many receipts of one session the index keeps, or a quarter more:
// a session may be of any length.
func (c *Config) keepReceipts() int { return max(leastKept, 4*c.RotateRows) }

// beyond is what the index knows of the receipts of a session that it left out. All
// of them have a sequence from lowest on, and none that was kept has: what was kept is
// complete up to there.
type beyond struct {
	receipts    int // a repeated one counts each time
	lowest      uint64
	highest     uint64
	ended       bool      // one of them ends the session
	first, last time.Time // the extent of their event times
}

func (b *beyond) add(r *schema.Receipt) {
	if b.receipts == 0 || r.Sequence < b.lowest {
		b.lowest = r.Sequence
	}
	if b.receipts == 0 || r.EventTime.Before(b.first) {
		b.first = r.EventTime
	}
	if b.receipts == 0 || r.EventTime.After(b.last) {
		b.last = r.EventTime
	}
	b.highest, b.ended = max(b.highest, r.Sequence), b.ended || r.End
	b.receipts++
}

// widen adds what was left out to the extent of a session that is told.
func (b *beyond) widen(row *store.Session) {
	if b.receipts == 0 {
		return
	}
	row.LastSequence = b.highest
	if b.first.Before(row.FirstEvent) {
		row.FirstEvent = b.first
	}
	if b.last.After(row.LastEvent) {
		row.LastEvent = b.last
	}
}

// add adds a receipt, or leaves it out where lower ones take all the room.
func (s *openSession) add(r *schema.Receipt) {
	s.highest, s.ended = max(s.highest, r.Sequence), s.ended || r.End
	if !s.reaches(r.Sequence) {
		s.beyond.add(r)
		return
	}
	r.AgentID, r.SessionID = s.key.AgentID, s.key.SessionID // one copy of the names
	s.receipts, s.bytes = append(s.receipts, *r), s.bytes+recordBytes(r)
	if len(s.receipts) > s.keep+s.keep/4 {
		s.trim()
	}
}

// trim leaves out the receipts of the highest sequences where there are too many, not
// counting repeated ones.
func (s *openSession) trim() {
	s.settle(0)
	for len(s.receipts) > s.keep {
		last := len(s.receipts) - 1
		s.beyond.add(&s.receipts[last])
		s.bytes -= recordBytes(&s.receipts[last])
		s.receipts = s.receipts[:last]
	}
}

// whole tells whether no receipt was left out.
func (s *openSession) whole() bool { return s.beyond.receipts == 0 }

// reaches tells whether no receipt up to a sequence was left out.
func (s *openSession) reaches(sequence uint64) bool {
	return s.whole() || sequence < s.beyond.lowest
}

// lacks tells whether the next part of a session needs receipts that were left out,
// so that nothing can be said of it.
func (s *openSession) lacks(cfg *Config) bool {
	if s.whole() {
		return false
	}
	s.settle(0)
	_, full := s.next(cfg)
	return s.short || !full
}

// closeEmpty takes a session out of the index of which nothing is left.
func (x *index) closeEmpty(s *openSession) {
	if len(s.receipts) == 0 && s.whole() {
		delete(x.sessions, s.key)
	}
}
