package session

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/plumbline/plumbline/schema"
)

const numberField = "context.metadata.sequence_number"

// Range is a range of sequence numbers, both ends included.
type Range struct{ From, To uint64 }

// String returns "3..17", or "3".
func (r Range) String() string {
	if r.From == r.To {
		return strconv.FormatUint(r.From, 10)
	}
	return strconv.FormatUint(r.From, 10) + ".." + strconv.FormatUint(r.To, 10)
}

// MarshalText returns the form of String.
func (r Range) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the form of String.
func (r *Range) UnmarshalText(text []byte) (err error) {
	from, to, both := strings.Cut(string(text), "..")
	if !both {
		to = from
	}
	if r.From, err = strconv.ParseUint(from, 10, 64); err == nil {
		r.To, err = strconv.ParseUint(to, 10, 64)
	}
	if err != nil || r.From > r.To {
		return fmt.Errorf("%.50q is not a range of sequence numbers", text)
	}
	return nil
}

// gap is a range of numbers that no trace of the part has. It holds the event times of the
// traces on both sides and the id of the trace above it.
type gap struct {
	Range
	after, before int64
	next          string
}

// numbers processes the sequence numbers of a part. Its memory does not depend on the size of
// the numbers.
type numbers struct {
	floor   stamp // the greatest of the earlier parts, if Numbered: lower numbers came late
	least   stamp
	leastID string
	last    stamp // the greatest
	gaps    []gap // ascending
	lost    int   // gaps beyond the limit

	preceding *NumberedTrace // of the agent's other sessions; nil if unknown
}

// skipped returns the numbers between the trace that preceded the session and the session's
// least number, nil where there are none.
func (n *numbers) skipped() *Range {
	if n.preceding == nil || n.preceding.Number+1 >= n.least.Number {
		return nil
	}
	return &Range{n.preceding.Number + 1, n.least.Number - 1}
}

// add adds one number. It returns false where another trace already has it.
func (n *numbers) add(s stamp, id string) bool {
	switch {
	case n.floor.Numbered && s.Number <= n.floor.Number:
		return true
	case !n.last.Numbered:
		n.least, n.leastID, n.last = s, strings.Clone(id), s
		if n.floor.Numbered {
			n.least = n.floor
			n.open(len(n.gaps), n.floor, s, id)
		}
	case s.Number > n.last.Number:
		n.open(len(n.gaps), n.last, s, id)
		n.last = s
	case s.Number < n.least.Number:
		n.open(0, s, n.least, n.leastID)
		n.least, n.leastID = s, strings.Clone(id)
	default:
		return n.fill(s, id)
	}
	return true
}

// open records the numbers between two neighbours as a gap, at an index among the gaps.
func (n *numbers) open(at int, low, high stamp, next string) {
	if high.Number-low.Number > 1 {
		n.insert(at, gap{Range: Range{low.Number + 1, high.Number - 1}, after: low.Time, before: high.Time, next: strings.Clone(next)})
	}
}

func (n *numbers) insert(at int, g gap) {
	if len(n.gaps) == maxGaps {
		n.lost++
		return
	}
	n.gaps = slices.Insert(n.gaps, at, g)
}

// fill removes a number from its gap.
func (n *numbers) fill(s stamp, id string) bool {
	i := n.find(s.Number)
	if i < 0 {
		return n.lost > 0 // possibly in a gap that was not kept
	}
	whole := n.gaps[i]
	n.gaps = slices.Delete(n.gaps, i, i+1)
	if s.Number < whole.To {
		n.insert(i, gap{Range: Range{s.Number + 1, whole.To}, after: s.Time, before: whole.before, next: whole.next})
	}
	if s.Number > whole.From {
		n.insert(i, gap{Range: Range{whole.From, s.Number - 1}, after: whole.after, before: s.Time, next: strings.Clone(id)})
	}
	return true
}

// find returns the index of the gap that contains a number, or -1.
func (n *numbers) find(number uint64) int {
	i := sort.Search(len(n.gaps), func(i int) bool { return n.gaps[i].To >= number })
	if i < len(n.gaps) && n.gaps[i].From <= number {
		return i
	}
	return -1
}

// above returns the id of the trace that follows a missing number.
func (n *numbers) above(number uint64) string {
	if i := n.find(number); i >= 0 {
		return n.gaps[i].next
	}
	return ""
}

// number checks the sequence number of a trace.
func (j *Judge) number(t *schema.Trace, s stamp) {
	if !s.Numbered {
		return
	}
	if !j.numbers.add(s, t.TraceID) {
		j.find(schema.TraceOrder, schema.SeverityMedium, t.TraceID, numberField,
			fmt.Sprintf("another trace of the session has sequence number %d too", s.Number))
	}
	// Times and numbers must agree: the log is ordered by one of them, and the other should rise
	// as well.
	value, text := s.Time, "sequence number %d has an earlier event time than the number before it"
	if !j.head.Numbered {
		value, text = int64(s.Number), "sequence number %d has a later event time than a number above it"
	}
	if _, falls := j.clocks.add(value, s); falls {
		j.find(schema.TraceOrder, schema.SeverityMedium, t.TraceID, numberField, fmt.Sprintf(text, s.Number))
	}
}
