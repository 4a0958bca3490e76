package drift

import (
	"math/bits"
	"slices"
)

// detector holds what a series has shown since its baseline, or since its last condition.
type detector struct {
	tests    []running     // of the fixed tests, then of the baseline's declared values
	sessions []sessionSeen // at most openSessions, the one with the newest trace last
	telling  []telling     // at most tellings
}

// openSessions is how many sessions of a series are followed side by side. Of more, the one that is
// silent for longest is forgotten: it counts as a new one when it continues.
const openSessions = 12

// sessionSeen is what a session has shown.
type sessionSeen struct {
	session uint64             // hash of its id
	seen    [measures + 1]seen // by measure; the last is low similarity
}

// testSet is a set of tests; the streak is one of them.
type testSet uint32

func (s testSet) has(t test) bool { return s>>t&1 == 1 }

// telling is a trace that shows the change of some tests.
type telling struct {
	traceID string
	shows   testSet
}

// tellings is how many such traces are kept, and best how many of them an alert names.
const (
	tellings = 6
	best     = 3
)

// step adds what a trace shows. It returns the tests that reached their limit, and those that reached a
// tenth of it: they join a condition, whose opening has paid for the false alarm. low says whether
// the similarity is low, and lowRate how often it is in the baseline. c is the open condition, or nil.
func (d *detector) step(x *Sample, observed []observation, low bool, lowRate float64, p Params, c *condition) (crossed, near testSet) {
	session := d.session(hashOf(x.Session))
	var shown testSet
	for _, o := range observed {
		seen := &session.seen[o.measure]
		rise, fall := o.measure.tests()
		for _, t := range [...]test{rise, fall} {
			if t == none {
				continue
			}
			bound := o.bounds.high
			if t != rise {
				bound = o.bounds.low
			}
			if bound == 0 {
				continue
			}
			read := reading{event: o.event, rises: t == rise, p: bound.value(), mean: o.bounds.mean.value(), kappa: o.measure.kappa(), seen: *seen}
			r := &d.tests[t]
			r.step(read)
			c.recede(t, read, r.stretch)
			if read.shows() {
				shown |= 1 << t
			}
			sum, most := r.sum(), limit(t.share(len(d.tests)), p.FalseAlarms)
			if sum >= most {
				crossed |= 1 << t
			}
			if sum >= most/10 {
				near |= 1 << t
			}
		}
		seen.add(o.event)
	}
	c.recede(streak, reading{event: low, rises: true, p: lowRate, kappa: kappa, seen: session.seen[measures]}, stretch{})
	session.seen[measures].add(low)
	if low {
		shown |= 1 << streak
	}
	d.tell(x.TraceID, shown)
	c.note(x.TraceID, shown)
	if x.SessionEnd {
		d.sessions = d.sessions[:len(d.sessions)-1]
	}
	return crossed, near
}

// departing returns those of the tests whose stretch shows their change.
func (d *detector) departing(of testSet) (departing testSet) {
	for set := of; set != 0; set &= set - 1 {
		t := test(bits.TrailingZeros32(uint32(set)))
		if _, rises := t.of(); d.tests[t].departs(rises) {
			departing |= 1 << t
		}
	}
	return departing
}

// session returns the entry of a session, and makes it the newest.
func (d *detector) session(hash uint64) *sessionSeen {
	i := slices.IndexFunc(d.sessions, func(s sessionSeen) bool { return s.session == hash })
	found := sessionSeen{session: hash}
	if i >= 0 {
		found = d.sessions[i]
	}
	if i < 0 && len(d.sessions) == openSessions {
		i = 0
	}
	if i >= 0 {
		d.sessions = slices.Delete(d.sessions, i, i+1)
	}
	if len(d.sessions) == cap(d.sessions) { // append alone would double it
		d.sessions = append(make([]sessionSeen, 0, len(d.sessions)+2), d.sessions...)
	}
	d.sessions = append(d.sessions, found)
	return &d.sessions[len(d.sessions)-1]
}

// tell keeps a trace that shows something. Where there are more than are kept, the oldest goes whose
// tests are each shown by enough newer ones, or the oldest of all.
func (d *detector) tell(traceID string, shown testSet) {
	if shown == 0 {
		return
	}
	if len(d.telling) == tellings {
		i := d.dispensable()
		d.telling = slices.Delete(d.telling, i, i+1)
	}
	d.telling = append(d.telling, telling{traceID, shown})
}

func (d *detector) dispensable() int {
	for i := range d.telling {
		needed := d.telling[i].shows
		for set := needed; set != 0; set &= set - 1 {
			if t := test(bits.TrailingZeros32(uint32(set))); d.newer(i, t) >= best {
				needed &^= 1 << t
			}
		}
		if needed == 0 {
			return i
		}
	}
	return 0
}

func (d *detector) newer(than int, t test) (n int) {
	for _, other := range d.telling[than+1:] {
		if other.shows.has(t) {
			n++
		}
	}
	return n
}

// best returns the newest traces that show the change of t, in their order.
func (d *detector) best(t test) (ids []string) {
	for _, each := range slices.Backward(d.telling) {
		if each.shows.has(t) && len(ids) < best {
			ids = append(ids, each.traceID)
		}
	}
	slices.Reverse(ids)
	return ids
}

// reset forgets everything, as after a baseline.
func (d *detector) reset(tests int) {
	if len(d.tests) != tests {
		d.tests = make([]running, tests)
	}
	clear(d.tests)
	clear(d.telling)
	d.sessions, d.telling = d.sessions[:0], d.telling[:0]
}
