package session

import (
	"fmt"

	"github.com/plumbline/plumbline/schema"
)

// stamp is the place of a trace in its session according to the trace: its event time, and its
// number if it has one.
type stamp struct {
	Time     int64  `json:"time"` // Unix nanoseconds
	Number   uint64 `json:"number,omitempty"`
	Numbered bool   `json:"numbered,omitempty"`

	byNumber bool // the log of the part is ordered by number
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

// point is a value of a trace at its place.
type point struct {
	Value int64 `json:"value"`
	At    stamp `json:"at"`
	Known bool  `json:"known"`
}

// rising tracks a value that should not fall from one place to the next. Traces of the same
// place have no order, so each is compared with the previous place.
type rising struct {
	newest point // the lowest value of the newest place
	before point // of the previous place
}

// add adds a value and reports whether it is below that of the previous place. Late values are
// ignored.
func (r *rising) add(value int64, at stamp) (before int64, falls bool) {
	switch {
	case !r.newest.Known:
		r.newest = point{Value: value, At: at, Known: true}
	case at.before(r.newest.At):
		return 0, false
	case r.newest.At.before(at):
		r.before, r.newest = r.newest, point{Value: value, At: at, Known: true}
	default:
		r.newest.Value = min(r.newest.Value, value)
	}
	return r.before.Value, r.before.Known && value < r.before.Value
}

// turn checks that the turns of the conversation do not decrease.
func (j *Judge) turn(t *schema.Trace, s stamp) {
	if !t.Context.HasTurn {
		return
	}
	if before, falls := j.turns.add(t.Context.ConversationTurn, s); falls {
		j.find(schema.TurnOrder, schema.SeverityMedium, t.TraceID, "context.conversation_turn",
			fmt.Sprintf("turn %d follows turn %d", t.Context.ConversationTurn, before))
	}
}
