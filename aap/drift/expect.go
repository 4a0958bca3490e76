package drift

import "math"

// What the baseline leads to expect of a rate. A baseline is a sample: its own rate is an estimate,
// so later traces are compared with the highest and the lowest rate that it leaves open (Wilson's
// interval), not with its mean. Decisions of one session resemble each other, so the m decisions
// of a session count as m(1+kappa)/(m+kappa) independent ones.
const (
	// The concentration of the sessions' own rates, by what is measured: ADR 23 has what recorded agents show.
	// 0 would count a session as one decision.
	kappa        = 6.0
	kappaOfTexts = 2.0
	kappaOutside = 3.0 // of unescalated actions outside bounded_actions
	kappaApplied = 20. // of declared values: what an action applies hardly depends on the session

	// That of escalations of all decisions is the agent's own, within bounds: see concentration. Where no decision of the
	// baseline is escalated, or each is, it does not say how alike those of a session are.
	leastOfRate   = .25
	mostOfRate    = 2.0 // with more, one long session is an alarm: an agent may hand over one session in twenty entirely
	unknownOfRate = 1.0

	caution         = 0.7 // z of the interval: a compromise between false alarms and changes that are missed
	cautionOfRate   = 2.0 // of escalations of all decisions: which tasks come next is not known
	cautionOfErrors = 0.5 // errors are rare: with 0.7 half of those five times as frequent are missed

	leastRate = .01  // no rate is expected to be nearer to 0 or 1, but that which a falling one is compared with
	rareRate  = .005 // a rate that may be lower cannot fall: an agent that never does it would seem to do it less
	// Decisions of its group that a stratum is given. Which values an action applies is nearly a rule, so
	// few of its own decisions say more than those of its group: ADR 23 has the likelihood.
	pull          = 2.0
	pullOfApplied = 0.5
)

// rate is a share in 1/65536, as it is stored.
type rate uint16

func rateOf(p float64) rate                { return rate(math.Round(p * 65536)) } // p is in leastRate..1-leastRate
func (r rate) value() float64              { return float64(r) / 65536 }
func clipped(p float64) float64            { return min(1-leastRate, max(leastRate, p)) }
func independent(m, kappa float64) float64 { return m * (1 + kappa) / (m + kappa) }

// bounds are an expected rate, and the least favourable rates above and below it. The zero value is unknown. low
// is 0 where the rate cannot fall: the event is so rare that its absence says nothing. high is 0 where it
// cannot rise: every decision of the baseline shows the event.
type bounds struct{ mean, high, low rate }

func (b bounds) known() bool { return b.mean != 0 }

// or returns bounds that are at least as wide as each of two, of which one may be unknown.
func (b bounds) or(o bounds) bounds {
	switch {
	case !b.known():
		return o
	case !o.known():
		return b
	}
	wide := bounds{mean: max(b.mean, o.mean), high: max(b.high, o.high), low: min(b.low, o.low)}
	if b.high == 0 || o.high == 0 {
		wide.high = 0
	}
	return wide
}

// within returns the bounds that a baseline leaves which showed an event in some of its decisions: one that
// it never showed cannot become rarer, and one that it always showed cannot become more frequent.
func (b bounds) within(shown cell) bounds {
	if shown.events == 0 {
		b.low = 0
	}
	if shown.events == shown.decisions && shown.decisions > 0 {
		b.high = 0
	}
	return b
}

// boundsOf returns Wilson's interval about the rate p of n independent decisions. A rate that rises
// to no more than the floor, or falls by no more from 1, counts as unchanged.
func boundsOf(p, n, floor, z float64) bounds {
	low, high := wilson(p, max(n, 1), z)
	b := bounds{
		mean: rateOf(clipped(p)),
		high: rateOf(max(floor, clipped(high))),
	}
	if low := min(1-floor, 1-leastRate, low); low >= rareRate {
		b.low = rateOf(low)
	}
	return b
}

// wilson returns the least and the greatest rate that the rate p of n decisions leaves open.
func wilson(p, n, z float64) (low, high float64) {
	zz := float64(z * z)
	middle := (p + zz/(2*n)) / (1 + zz/n)
	half := float64(z*math.Sqrt(float64(p*(1-p))/n+zz/(4*n*n))) / (1 + zz/n)
	return middle - half, middle + half
}

// belief is what is assumed of a rate before the baseline: a rate, as if from so many decisions.
type belief struct{ rate, decisions float64 }

var (
	ordinary = belief{.5, .5}  // of a rate of which nothing is known
	tenth    = belief{.1, .5}  // of an event that a quantile of the baseline defines
	rarely   = belief{.05, 2.} // of unescalated actions outside bounded_actions
)

// counts counts an event in a baseline, by stratum and session, of decisions with a concentration kappa. Strata
// of one group resemble each other: escalations are expected by action, and an action that was seen twice is
// expected to behave like the other actions of its type, as if it had that many more decisions (pull) at the rate of its type.
type counts struct {
	sessions int
	kappa    float64
	pull     float64
	cells    []cell // stratum by stratum, a cell for each session
	group    []int  // of each stratum; nil where each is drawn to the mean of all
}

type cell struct{ events, decisions float64 }

func newCounts(strata, sessions int, kappa, pull float64, group []int) *counts {
	return &counts{sessions: sessions, kappa: kappa, pull: pull, cells: make([]cell, strata*sessions), group: group}
}

func (c *counts) add(stratum, session int, event bool) {
	at := &c.cells[stratum*c.sessions+session]
	at.decisions++
	if event {
		at.events++
	}
}

// decisions returns how many decisions a stratum has.
func (c *counts) decisions(stratum int) (sum float64) {
	for _, at := range c.cells[stratum*c.sessions : (stratum+1)*c.sessions] {
		sum += at.decisions
	}
	return sum
}

// concentration returns the concentration of the sessions' own rates that the baseline itself shows, from leastOfRate
// to mostOfRate: 1/(1 + concentration) is the intraclass correlation (by analysis of variance), which is 1 where a session shows
// the event always or never.
func (c *counts) concentration() float64 {
	all, sessions, squares := c.raw(), 0., 0.
	for _, at := range c.cells {
		if at.decisions > 0 {
			sessions++
			squares += float64(at.decisions * at.decisions)
		}
	}
	if sessions < 2 || all.decisions == sessions || all.events == 0 || all.events == all.decisions {
		return unknownOfRate
	}
	mean, between, within := all.events/all.decisions, 0., 0.
	for _, at := range c.cells {
		if at.decisions > 0 {
			own := at.events / at.decisions
			between += float64(float64(at.decisions*(own-mean)) * (own - mean))
			within += float64(float64(at.decisions*own) * (1 - own))
		}
	}
	between /= sessions - 1
	within /= all.decisions - sessions
	size := (all.decisions - squares/all.decisions) / (sessions - 1) // of a session
	correlation := (between - within) / (between + float64((size-1)*within))
	if correlation <= 0 {
		return mostOfRate
	}
	return min(mostOfRate, max(leastOfRate, 1/correlation-1))
}

// raw returns the events and decisions of all strata, as they were counted.
func (c *counts) raw() (sum cell) {
	for _, at := range c.cells {
		sum.events += at.events
		sum.decisions += at.decisions
	}
	return sum
}

// expect returns the bounds over all strata, and those of each stratum. A stratum without a
// decision is unknown.
func (c *counts) expect(before belief, floor, z float64) (all bounds, strata []bounds) {
	perStratum := make([]cell, len(c.cells)/c.sessions)
	var sum cell
	for i, at := range c.cells {
		if at.decisions == 0 {
			continue
		}
		weight := independent(at.decisions, c.kappa) / at.decisions
		events, decisions := float64(weight*at.events), float64(weight*at.decisions)
		own := &perStratum[i/c.sessions]
		own.events += events
		own.decisions += decisions
		sum.events += events
		sum.decisions += decisions
	}
	shown := c.raw()
	mean := (sum.events + float64(before.decisions*before.rate)) / (sum.decisions + before.decisions)
	all = boundsOf(mean, sum.decisions, floor, z)
	own := sum.events / max(1, sum.decisions)
	all.high = max(all.high, rateOf(clipped(own))) // the baseline's own rate is no rise, whatever was believed before
	all = all.within(shown)
	near := c.near(perStratum, mean)
	strata = make([]bounds, len(perStratum))
	for i, own := range perStratum {
		if own.decisions > 0 {
			p := (own.events + float64(c.pull*near[i])) / (own.decisions + c.pull)
			strata[i] = boundsOf(p, own.decisions+c.pull, floor, z).within(shown)
		}
	}
	return all, strata
}

// near returns the rate that each stratum is drawn to: its group's, itself drawn to the mean.
func (c *counts) near(perStratum []cell, mean float64) []float64 {
	near := make([]float64, len(perStratum))
	if c.group == nil {
		for i := range near {
			near[i] = mean
		}
		return near
	}
	var groups [actionTypes]cell
	for i, own := range perStratum {
		g := &groups[c.group[i]]
		g.events += own.events
		g.decisions += own.decisions
	}
	for i := range near {
		g := groups[c.group[i]]
		near[i] = (g.events + float64(pull*mean)) / (g.decisions + pull)
	}
	return near
}
