package drift

import (
	"math/bits"
	"slices"
)

// detector holds what a series has shown since its baseline, or since its last condition.
type detector struct {
	tests    []running     // of the fixed tests, then of the baseline's declared values
	sessions []sessionSeen // at most openSessions, the one with the newest trace last
	examples [streak + 1]examples
	traces   []string // that are examples, at most places; the other ones are not needed any more
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

// step adds what a trace shows. It returns the tests that reached their limit, and those that reached a
// tenth of it: they join a condition, whose opening has paid for the false alarm. applied are the measured
// values that the trace applies, score is the similarity to the baseline, and lowRate how often
// it is low there. c is the open condition, or nil.
func (d *detector) step(x *Sample, observed []observation, applied application, score, lowRate float64, p Params, c *condition) (crossed, near testSet) {
	session, low := d.session(hashOf(x.Session)), score < p.SimilarityThreshold
	trace := shower{x.TraceID, -1}
	var shown testSet
	d.count(x, applied)
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
			read := reading{event: o.event, rises: t == rise, p: bound.value(), mean: o.bounds.mean.value(), kappa: o.kappa, seen: *seen, beyond: o.beyond}
			r := &d.tests[t]
			if r.begins() {
				d.examples[t] = examples{}
			}
			r.step(read)
			if bears, counted := bearing(t, x, applied); counted && r.all == 0 { // a new stretch begins with this trace
				r.count(bears)
			}
			c.recede(t, read, r.stretch)
			if rank := read.rank(); rank > 0 {
				d.show(&trace, t, rank, c)
			}
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
		d.show(&trace, streak, ranked(score), c)
	} else {
		d.examples[streak] = examples{}
	}
	c.note(x.TraceID, shown)
	if x.SessionEnd {
		d.sessions = d.sessions[:len(d.sessions)-1]
	}
	return crossed, near
}

// count counts a trace among all that came since a change began, for the tests whose category depends on it.
func (d *detector) count(x *Sample, applied application) {
	for i := range d.tests {
		if bears, counted := bearing(test(i), x, applied); counted {
			d.tests[i].count(bears)
		}
	}
}

// application says which of the measured declared values a decision applies, a bit each, and whether the baseline
// has its action often enough to say which ones it applies.
type application struct {
	values uint8
	often  bool
}

// bearing reports whether a trace bears on the category of a test, and whether the test counts the trace.
// An action that the baseline has seldom does not show that a value is given up: it may never have applied it.
func bearing(t test, x *Sample, applied application) (bears, counted bool) {
	switch {
	case t == test(unescalated), t == escalationsFall:
		return x.Escalated, true
	case t >= fixedTests:
		return applied.values>>(t-fixedTests)&1 == 1, applied.often && !x.Denies()
	}
	return false, false
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

// reset forgets everything, as after a baseline.
func (d *detector) reset(tests int) {
	if len(d.tests) != tests {
		d.tests = make([]running, tests)
	}
	clear(d.tests)
	clear(d.traces)
	d.sessions, d.traces, d.examples = d.sessions[:0], d.traces[:0], [streak + 1]examples{}
}
