package session

import "github.com/plumbline/plumbline/schema"

// stamp is a trace's place in its session by its own word: its event time, and
// its number where it has one.
type stamp struct {
	Time     int64  `json:"time"` // Unix nanoseconds
	Number   uint64 `json:"number,omitempty"`
	Numbered bool   `json:"numbered,omitempty"`

	byNumber bool // the log of the part is in the order of numbers
}

func (j *Judge) stampOf(t *schema.Trace) stamp {
	return stamp{Time: t.Timestamp.UnixNano(), Number: t.Context.SequenceNumber, Numbered: t.Context.HasSequenceNumber,
		byNumber: j.head.Numbered}
}

// place is where the log has the trace, among those of its part.
func (a stamp) place() int64 {
	if a.byNumber && a.Numbered {
		return int64(a.Number)
	}
	return a.Time
}

// before tells whether a certainly precedes b in the log. Of traces of one place,
// such as parallel calls, neither does: the order in which they arrived is not
// theirs.
func (a stamp) before(b stamp) bool {
	if a.Numbered != b.Numbered {
		return a.Time < b.Time // across parts
	}
	a.byNumber = a.byNumber || b.byNumber
	b.byNumber = a.byNumber
	return a.place() < b.place()
}
