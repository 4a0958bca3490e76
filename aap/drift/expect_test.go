package drift

import (
	"math"
	"testing"
)

func near(t *testing.T, what string, got, want, error float64) {
	t.Helper()
	if math.Abs(got-want) > error {
		t.Errorf("%s is %.6f, want %.6f", what, got, want)
	}
}

// Wilson's interval at z = 0.7, computed by hand: for p = 0.1 of 50, 0.1039 ± 0.0298.
func TestBoundsOfARate(t *testing.T) {
	const unit = 1. / 65536
	b := boundsOf(.1, 50, .01, .7)
	near(t, "mean", b.mean.value(), .1, unit)
	near(t, "high", b.high.value(), .133690, unit)
	near(t, "low", b.low.value(), .074074, unit)
	b = boundsOf(0, 1000, .05, .7)
	near(t, "the mean of a rate that was never seen", b.mean.value(), leastRate, unit)
	near(t, "its high bound with a floor", b.high.value(), .05, unit)
	b = boundsOf(1, 1000, .05, .7)
	near(t, "the low bound of a rate that was always seen, with a floor", b.low.value(), .95, unit)
	if (bounds{}).known() || !b.known() {
		t.Error("known is wrong")
	}
}

// Ten decisions of a session count as 10·7/16 = 4.375. One event in two such sessions gives, with
// the belief of half an event in one decision, (0.4375 + 0.25) / (8.75 + 0.5) = 0.0743.
func TestDecisionsOfASessionCountLess(t *testing.T) {
	c := newCounts(1, 2, kappa, pull, nil)
	for i := range 20 {
		c.add(0, i/10, i == 0)
	}
	all, strata := c.expect(ordinary, .01, .7)
	near(t, "mean", all.mean.value(), .074324, 1e-4)
	near(t, "high", all.high.value(), .161381, 1e-4)
	// The stratum is drawn to the mean by two decisions: (0.4375 + 2·0.0743) / 10.75.
	near(t, "mean of the stratum", strata[0].mean.value(), .054525, 1e-4)
	if raw := c.raw(); raw.events != 1 || raw.decisions != 20 {
		t.Errorf("raw counts %+v", raw)
	}
}

// An action that was seen once is expected to behave like the others of its type. One that was never
// seen is unknown.
func TestStrataAreDrawnToTheirGroup(t *testing.T) {
	c := newCounts(4, 1, kappa, pull, []int{1, 1, 2, 2})
	for range 100 {
		c.add(0, 0, true)
		c.add(2, 0, false)
	}
	c.add(1, 0, false)
	_, strata := c.expect(ordinary, .01, .7)
	if one, other := strata[1].mean.value(), strata[2].mean.value(); one < .3 || other > .2 {
		t.Errorf("rates %.2f and %.2f: the first has a group of events, the second one without", one, other)
	}
	if strata[3].known() {
		t.Error("an action that the baseline lacks has a rate")
	}
}

// The concentration follows from how much the sessions differ, computed by hand: of four sessions of ten decisions with 9, 1,
// 5 and 5 events the mean squares are 1.06667 between and 0.18889 within, and the correlation is 0.31727.
func TestConcentrationOfSessions(t *testing.T) {
	for name, c := range map[string]struct {
		events []int
		want   float64
	}{
		"some differ":       {[]int{9, 1, 5, 5}, mostOfRate}, // 2.151899 is more
		"more differ":       {[]int{9, 1, 9, 1}, 0.491803},   // mean squares 2.13333 and 0.1, correlation 0.67033,
		"all or none":       {[]int{10, 0, 10, 0}, leastOfRate},
		"all alike":         {[]int{5, 5, 5, 5}, mostOfRate},
		"nothing differs":   {[]int{0, 0, 0, 0}, unknownOfRate},
		"a session of many": {[]int{3}, unknownOfRate},
	} {
		counted := newCounts(1, len(c.events), kappa, pull, nil)
		for session, events := range c.events {
			for i := range 10 {
				counted.add(0, session, i < events)
			}
		}
		near(t, name, counted.concentration(), c.want, 1e-6)
	}
}
