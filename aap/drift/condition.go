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
	next     int    // the count at which it is told again
	last     string // the newest trace that shows it
	best     []string
	joined   []joined
}

// joined is a test in a condition, or the streak.
type joined struct {
	test  test
	quiet uint8   // traces of the series since one that speaks for the change
	back  float32 // evidence that the rate is again as the baseline leads to expect
}

// closing is the evidence for the baseline at which a test counts as recovered. It was chosen by
// measurement: docs/DRIFT.md.
const closing = 30

// silence is the number of traces without one that speaks for the change after which a test counts
// as recovered, too: an agent that gives up an action is no longer observed there.
const silence = 100

func (j *joined) recovered() bool { return j.back >= closing || j.quiet > silence }

// has reports whether a test is in the condition.
func (c *condition) has(t test) bool {
	return slices.ContainsFunc(c.joined, func(j joined) bool { return j.test == t })
}

// recede adds an observation to the evidence that a test is as before: the inverse ratio of the smaller
// change. p is the rate that the baseline leaves open. It does nothing without a condition.
func (c *condition) recede(t test, event bool, p float64, s seen) {
	if c == nil {
		return
	}
	for i := range c.joined {
		if j := &c.joined[i]; j.test == t {
			_, rises := t.of()
			if event == rises {
				j.quiet = 0
			}
			l := likelihood(event, p, changed(p, oddsRatios[0], rises), s)
			j.back = float32(min(mostEvidence, max(1, float64(j.back))/l))
		}
	}
}

// note counts a trace that shows the change of a test in the condition. It does nothing without a
// condition.
func (c *condition) note(traceID string, shown testSet) {
	if c == nil {
		return
	}
	for i := range c.joined {
		c.joined[i].quiet = min(c.joined[i].quiet+1, silence+1)
	}
	if !slices.ContainsFunc(c.joined, func(j joined) bool { return shown.has(j.test) }) {
		return
	}
	c.count++
	c.last = traceID
}

// recovered reports whether every test in the condition speaks for the baseline again.
func (c *condition) recovered() bool {
	return !slices.ContainsFunc(c.joined, func(j joined) bool { return !j.recovered() })
}

// condition returns the condition that a trace opens.
func (s *State) condition(x *Sample, crossed, near testSet, p Params) *condition {
	c := &condition{openedAt: x.EventTime, revision: 1, last: x.TraceID}
	c.join(crossed)
	c.join(near)
	c.first = c.joined[0].test
	c.count = s.Streak
	if c.first != streak {
		c.count = int(s.detector.tests[c.first].shown)
	}
	c.count = max(1, c.count)
	c.told()
	c.show(x, &s.detector)
	c.id = s.conditionID(x, c.first, p)
	return c
}

// join adds the tests that crossed and are not in the condition yet. It reports whether there are
// any.
func (c *condition) join(crossed testSet) bool {
	before := len(c.joined)
	for t := range streak + 1 {
		if crossed.has(t) && !c.has(t) {
			c.joined = append(c.joined, joined{test: t})
		}
	}
	return len(c.joined) > before
}

// told sets the count of the next update: the next power of two.
func (c *condition) told() {
	for c.next = 2; c.next <= c.count; {
		c.next *= 2
	}
}

// show chooses the traces that the alert names: the newest that show the first test, and the
// trace itself.
func (c *condition) show(x *Sample, d *detector) {
	ids := d.best(c.first)
	if !slices.Contains(ids, x.TraceID) {
		ids = append(ids[max(0, len(ids)-best+1):], x.TraceID)
	}
	c.best = ids
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
			SustainedTraces:    s.Streak,
			Threshold:          p.SimilarityThreshold,
			DriftDirection:     s.direction(c),
			SpecificIndicators: s.indicators(c),
		},
		Recommendation: recommendation,
		TraceIDs:       slices.Clone(c.best),
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
