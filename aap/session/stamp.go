package session

import "github.com/plumbline/plumbline/schema"

// stamp is the place of a trace in its session according to the trace: its event time, and its
// number if it has one.
type stamp struct {
	Time     int64  `json:"time"` // Unix nanoseconds
	Number   uint64 `json:"number,omitempty"`
	Numbered bool   `json:"numbered,omitempty"`

	byNumber bool // the log of the part is ordered by number
}

func (j *Judge) stampOf(t *schema.Trace) stamp {
	return stamp{Time: t.Timestamp.UnixNano(), Number: t.Context.SequenceNumber, Numbered: t.Context.HasSequenceNumber,
		byNumber: j.head.Numbered}
}

// place returns the position of the trace in the log of its part.
func (a stamp) place() int64 {
	if a.byNumber && a.Numbered {
		return int64(a.Number)
	}
	return a.Time
}

// before reports whether a certainly precedes b in the log. Of traces of the same place, such
// as parallel calls, neither precedes the other: the order of arrival is not their order.
func (a stamp) before(b stamp) bool {
	if a.Numbered != b.Numbered {
		return a.Time < b.Time // across parts
	}
	a.byNumber = a.byNumber || b.byNumber
	b.byNumber = a.byNumber
	return a.place() < b.place()
}
