package aap

import (
	"slices"
	"strings"

	"github.com/plumbline/plumbline/schema"
)

// claim is the statement of a trace about a trigger; contradictory traces state both.
type claim struct {
	matched, unmatched bool
	observed           int // from 1: its first observation among those of the trace; 0: none
}

// observation is a value that a trace claims to have observed for a trigger.
type observation struct {
	value []byte // JSON
	check int    // index in triggers_checked
	next  int    // from 1: the next observation for the same trigger; 0: none
}

// claims are the claims of one trace about the triggers of its card.
type claims struct {
	on       []claim // by their places in the card's index
	observed []observation
}

// claimIndex finds the claims about a card's triggers by their conditions, ignoring
// insignificant white space. The cost for a trace depends on the length of its claims, not on
// the card.
type claimIndex struct {
	places  map[string]int // by squeezed condition
	longest int            // of these conditions, in bytes
}

// add returns the place of the claims about a condition.
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

// read groups the claims of a trace by the conditions of the index; it ignores other claims.
func (c *claims) read(index *claimIndex, checks []schema.TriggerCheck) {
	c.on, c.observed = slices.Grow(c.on[:0], len(index.places))[:len(index.places)], c.observed[:0]
	clear(c.on)
	if len(c.on) == 0 {
		return
	}
	var room [128]byte
	for i := range checks {
		check := &checks[i]
		squeezed, fits := squeeze(room[:0], check.Trigger, index.longest)
		if !fits {
			continue
		}
		place, known := index.places[string(squeezed)]
		if !known {
			continue
		}
		on := &c.on[place]
		on.matched = on.matched || check.Matched
		on.unmatched = on.unmatched || !check.Matched
		if len(check.ValueObserved) > 0 {
			c.observed = append(c.observed, observation{check.ValueObserved, i, on.observed})
			on.observed = len(c.observed)
		}
	}
}

// squeeze appends a condition without insignificant white space: one space stays between two
// words, and quoted texts stay unchanged. fits is false where the result is longer than most.
func squeeze(dst []byte, s string, most int) (squeezed []byte, fits bool) {
	quote, escaped, space := byte(0), false, false
	for i := range len(s) {
		c := s[i]
		if quote == 0 && (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
			space = true
			continue
		}
		if space && len(dst) > 0 && inWord(dst[len(dst)-1]) && inWord(c) {
			dst = append(dst, ' ')
		}
		space = false
		if dst = append(dst, c); len(dst) > most {
			return nil, false
		}
		switch {
		case escaped:
			escaped = false
		case c == '\\':
			escaped = true
		case c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		}
	}
	return dst, true
}

// inWord reports whether a byte can be part of a word or a number of a condition.
func inWord(c byte) bool { return strings.IndexByte(`(<>=!,"')`, c) < 0 }
