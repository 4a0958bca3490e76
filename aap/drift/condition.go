package drift

import (
	"crypto/sha256"
	"slices"
	"time"

	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

// condition is one lasting change. It opens when a test reaches its limit or a streak is sustained.
// Whatever else crosses while it is open joins it, so that one change is one alert. It closes when
// every test in it speaks for the baseline again.
type condition struct {
	id       schema.Digest
	first    test
	openedAt time.Time
	revision int
	count    int    // traces that show it
	next     int    // the count at which the next update is sent
	last     string // the newest trace that shows it
	joined   []joined
}

// joined is a test in a condition, or the streak.
type joined struct {
	test   test
	quiet  uint16  // traces of the series since an observation that leaves the change open
	back   float32 // evidence that the rate is again as the baseline leads to expect
	height stretch // where the evidence for the change was greatest; zero for the streak

	examples examples // of all traces of the condition
}

// closing is the evidence for the baseline at which a test counts as recovered, for each trace that
// showed the condition: a change that lasts long has more chances to look like the baseline for a
// while. It was chosen by measurement: ADR 23.
const closing = 15

// silence is the number of traces without an observation that leaves the change open after which a test
// counts as recovered, too: an agent that gives up an action is no longer observed there, or seldom. It is at least
// twice the mean distance of the observations since the change began, where that is known: what comes every 150 traces is
// not over after 100. Beyond mostSilence a new alert is no repetition.
const (
	silence     = 100
	mostSilence = 1000
)

func (j *joined) silence() int {
	return max(silence, min(mostSilence, 2*int(j.height.all)/max(1, int(j.height.of))))
}

// recovered reports whether the test speaks for the baseline again, in a condition that so many traces
// have shown.
func (j *joined) recovered(count int) bool { return j.asBefore(count) || int(j.quiet) > j.silence() }

func (j *joined) asBefore(count int) bool { return float64(j.back) >= closing*float64(max(2, count)) }

// has reports whether a test is in the condition.
func (c *condition) has(t test) bool {
	return slices.ContainsFunc(c.joined, func(j joined) bool { return j.test == t })
}

// examples returns the examples of a test in the condition; nil where it is not in it, or there is none.
func (c *condition) examples(t test) *examples {
	if c == nil {
		return nil
	}
	for i := range c.joined {
		if c.joined[i].test == t {
			return &c.joined[i].examples
		}
	}
	return nil
}

// recede adds an observation to the evidence that a test is as before: the inverse ratio of its change.
// now is the test's stretch. It does nothing without a condition.
func (c *condition) recede(t test, o reading, now stretch) {
	if c == nil {
		return
	}
	for i := range c.joined {
		if j := &c.joined[i]; j.test == t {
			if now.departs(o.rises) && (now.cusum >= j.height.cusum || !j.height.departs(o.rises)) {
				j.height = now
			}
			q := j.departed(o.p, o.rises)
			l := o.likelihood(q)
			j.back = float32(min(mostEvidence, max(1, float64(j.back))/l))
			if o.telling(q) && l > 1./2 { // what the change makes half as likely says that it is over
				j.quiet = 0
			}
		}
	}
}

// least and most bound the change, as a ratio of odds, with which the end of a condition is compared. ADR 23 has
// what other bounds do: 8 as most keeps a condition open long after a great change is over, 64 closes
// while a part of the change lasts.
const (
	least = 2
	most  = 16
)

// departed returns the rate that the baseline's is compared with for the end of a condition. It is the
// change at its height as cautiously as it is known (the height was chosen for being high), so a
// moderate change that lasts is not taken for the baseline; within odds that are least and most times
// those of p, or as many times lower.
func (j *joined) departed(p float64, rises bool) float64 {
	if j.height.of == 0 { // of the streak nothing is known
		return changed(p, oddsRatios[0], rises)
	}
	cautious, high := wilson(j.height.share().value(), float64(j.height.of), 1)
	if !rises {
		cautious = high
	}
	a, b := changed(p, least, rises), changed(p, most, rises)
	return min(max(cautious, min(a, b)), max(a, b))
}

// told returns the test that the condition's events speak of: the first that lasts, or the first.
func (c *condition) told() *joined {
	for i := range c.joined {
		if !c.joined[i].recovered(c.count) {
			return &c.joined[i]
		}
	}
	return &c.joined[0]
}

// note counts a trace that shows the change of a test in the condition. It does nothing without a
// condition.
func (c *condition) note(traceID string, shown testSet) {
	if c == nil {
		return
	}
	for i := range c.joined {
		c.joined[i].quiet = min(c.joined[i].quiet+1, mostSilence+1)
	}
	if !slices.ContainsFunc(c.joined, func(j joined) bool { return shown.has(j.test) }) {
		return
	}
	c.count++
	c.last = traceID
}

// recovered reports whether every test in the condition speaks for the baseline again.
func (c *condition) recovered() bool {
	return !slices.ContainsFunc(c.joined, func(j joined) bool { return !j.recovered(c.count) })
}

// condition returns the condition that a trace opens.
func (s *State) condition(x *Sample, crossed, near testSet, p Params) *condition {
	c := &condition{openedAt: x.EventTime, revision: 1, last: x.TraceID}
	c.join(crossed, &s.detector)
	c.join(s.detector.departing(near), &s.detector)
	c.first = c.joined[0].test
	c.count = s.Streak
	if c.first != streak {
		c.count = int(s.detector.tests[c.first].shown)
	}
	c.count = max(1, c.count)
	c.tellNext()
	c.id = s.conditionID(x, c.first, p)
	return c
}

// join adds the tests that crossed and are not in the condition yet. It reports whether there are
// any.
func (c *condition) join(crossed testSet, d *detector) bool {
	before := len(c.joined)
	for t := range streak + 1 {
		switch {
		case !crossed.has(t) || c.has(t):
		case t == streak:
			c.joined = append(c.joined, joined{test: t, examples: d.examples[t]})
		default:
			c.joined = append(c.joined, joined{test: t, height: d.tests[t].stretch, examples: d.examples[t]})
		}
	}
	return len(c.joined) > before
}

// tellNext sets the count of the next update: the next power of two.
func (c *condition) tellNext() {
	for c.next = 2; c.next <= c.count; {
		c.next *= 2
	}
}

// best returns the traces that the alert names: those that show best what it speaks of.
func (c *condition) best(d *detector) []string {
	if ids := d.ids(c.told().examples); len(ids) > 0 {
		return ids
	}
	return []string{c.last} // an older version kept no other, or there was no place
}

// conditionID is the SHA-256 of everything that identifies a condition, so a replay gives the same
// id. Strings are preceded by their lengths.
func (s *State) conditionID(x *Sample, first test, p Params) schema.Digest {
	h := sha256.New()
	writeString(h, x.AgentID)
	writeString(h, x.CardID)
	h.Write(s.expected.ID[:])
	h.Write(x.Digest[:])
	writeString(h, s.name(first))
	writeString(h, EngineVersion)
	p.identify(h)
	return schema.Digest(h.Sum(nil))
}

// event returns the alert that tells the condition's newest state at trace x.
func (s *State) event(x *Sample, state schema.AlertState, score float64, p Params) *schema.DriftAlert {
	c := s.open
	a := &schema.DriftAlert{
		AlertID:            c.id,
		AlertType:          alertType,
		AgentID:            x.AgentID,
		CardID:             x.CardID,
		DetectionTimestamp: x.EventTime,
		Analysis: schema.DriftAnalysis{
			SimilarityScore:    similarity.Round4(score),
			SustainedTraces:    c.count,
			Threshold:          p.SimilarityThreshold,
			DriftDirection:     s.direction(c),
			SpecificIndicators: s.indicators(c),
		},
		Recommendation: recommendation,
		TraceIDs:       c.best(&s.detector),
		EngineVersion:  EngineVersion,
		Mode:           string(p.Mode),
		BaselineID:     s.expected.ID,
		Methodology:    Methodology(p),
		State:          state,
		Revision:       c.revision,
		OpenedAt:       c.openedAt,
		LastTraceID:    c.last,
		Count:          c.count,
		Strength:       s.strength(c, p),
		Summary:        s.summary(c, state),
	}
	if state == schema.AlertClosed {
		a.ClosedAt = x.EventTime
	}
	for _, j := range c.joined {
		a.Measures = append(a.Measures, s.name(j.test))
	}
	return a
}

// strength is the decimal logarithm of the greatest evidence over its limit, with one decimal; 0 for
// a streak alone.
func (s *State) strength(c *condition, p Params) float64 {
	tenths := 0
	for _, j := range c.joined {
		if j.test == streak {
			continue
		}
		n, over := 0, s.detector.tests[j.test].sum()/limit(j.test.share(len(s.detector.tests)), p.FalseAlarms)
		for ; over >= tenthRoot; n++ { // a logarithm may differ in its last bit from machine to machine
			over /= tenthRoot
		}
		tenths = max(tenths, n)
	}
	return float64(tenths) / 10
}

// tenthRoot is the tenth root of ten.
const tenthRoot = 1.2589254117941673
