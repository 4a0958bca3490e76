package session

import "slices"

// NextPart is the state that the verdict on one part passes to the next part. It includes
// neither trace ids nor the numbers below the greatest: the agent's stored traces have those.
// It does not include items beyond the limits in judge.go either. Lost counts these items,
// except answered escalations.
type NextPart struct {
	Turn     *point           `json:"turn,omitempty"`
	Number   *stamp           `json:"number,omitempty"` // the greatest
	Open     []openEscalation `json:"open,omitempty"`
	Answered []answered       `json:"answered,omitempty"`
	Decided  []decision       `json:"decided,omitempty"`
	Declined []declined       `json:"declined,omitempty"`
	Run      *carriedRun      `json:"run,omitempty"`  // of equal acts
	Lost     int64            `json:"lost,omitempty"` // escalations and decisions dropped in this part and the previous ones
}

// nextPart collects the state for the next part. Where not all items fit, the newest take
// precedence.
func (j *Judge) nextPart() *NextPart {
	c := &NextPart{Lost: j.lost + j.escalations.lost + j.decisions.lost}
	if last := j.turns.newest; last.Known {
		c.Turn = &last
	}
	if last := j.numbers.last; last.Numbered {
		c.Number = &last
	} else if floor := j.numbers.floor; floor.Numbered {
		c.Number = &floor
	}
	c.Decided = newest(j.decisions.standing, (*decision).size)
	c.Open = newest(j.escalations.open, (*openEscalation).size)
	c.Answered = newest(j.escalations.closed, (*answered).size)
	c.Run = j.repeated.carried()
	c.Declined = newest(j.declined, (*declined).size)
	c.Lost += int64(len(j.decisions.standing) - len(c.Decided) + len(j.escalations.open) - len(c.Open) + len(j.declined) - len(c.Declined))
	if j.head.LastPart {
		for i := range c.Open {
			c.Open[i] = c.Open[i].reported()
		}
	}
	return c
}

// newest returns a copy of the newest items that fit, in their order.
func newest[T any](items []T, size func(*T) int) []T {
	var kept []T
	room := maxCarry
	for i := range slices.Backward(items) {
		if n := size(&items[i]); n <= room && len(kept) < maxCarryItems {
			room -= n
			kept = append(kept, items[i])
		}
	}
	slices.Reverse(kept)
	return kept
}

// size estimates the bytes of an item in a NextPart: its texts plus the maximum of the rest.
func (o *openEscalation) size() int {
	n := 220 + len(o.ID) + len(o.Action) + len(o.TraceID)
	for i := range o.Acts {
		n += o.Acts[i].size()
	}
	return n
}

func (a *act) size() int { return 150 + len(a.TraceID) + len(a.Action) + len(a.ID) }

func (c *answered) size() int { return 100 + len(c.ID) + len(c.Action) }

func (d *decision) size() int {
	n := 280 + len(d.ID) + len(d.Action) + len(d.TraceID)
	for _, text := range d.Conditions {
		n += len(text)
	}
	return n
}
