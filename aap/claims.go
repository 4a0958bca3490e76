package aap

import "github.com/plumbline/plumbline/schema"

// claim is what a trace says about a trigger; contradictory traces say both.
type claim struct {
	matched, unmatched bool
}

// claimIndex finds the claims on a card's triggers by their conditions, white
// space aside, so that a trace costs what its claims are long, whatever the card.
type claimIndex struct {
	places  map[string]int // by condition without white space
	longest int            // of these conditions, in bytes
}

// add returns the place of the claims on a condition.
func (x *claimIndex) add(condition string) int {
	squeezed, _ := squeeze(nil, condition, len(condition))
	place, known := x.places[string(squeezed)]
	if known {
		return place
	}
	if x.places == nil {
		x.places = make(map[string]int)
	}
	place = len(x.places)
	x.places[string(squeezed)] = place
	x.longest = max(x.longest, len(squeezed))
	return place
}

// read sums up what a trace claims, each condition in its place of dst.
func (x *claimIndex) read(dst []claim, checks []schema.TriggerCheck) []claim {
	dst = append(dst[:0], make([]claim, len(x.places))...)
	if len(dst) == 0 {
		return dst
	}
	var room [128]byte
	for i := range checks {
		squeezed, fits := squeeze(room[:0], checks[i].Trigger, x.longest)
		if !fits {
			continue
		}
		if place, known := x.places[string(squeezed)]; known {
			dst[place].matched = dst[place].matched || checks[i].Matched
			dst[place].unmatched = dst[place].unmatched || !checks[i].Matched
		}
	}
	return dst
}

// squeeze appends s without white space, unless that is longer than most.
func squeeze(dst []byte, s string, most int) (squeezed []byte, fits bool) {
	for i := range len(s) {
		switch s[i] {
		case ' ', '\t', '\n', '\r':
			continue
		}
		if len(dst) == most {
			return nil, false
		}
		dst = append(dst, s[i])
	}
	return dst, true
}
