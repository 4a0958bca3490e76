package drift

import (
	"math"
	"testing"
)

// The sums after two events of one session, and one decision of another without the event, at an
// expected rate of 0.05, computed by hand. The odds 0.0526 times 8 are a rate of 0.2963, so the first
// event is 5.926 times as likely; the second (6·0.2963+1)/(6·0.05+1) = 2.1368 times.
func TestEvidenceByHand(t *testing.T) {
	var r running
	var s seen
	step := func(event bool) {
		r.step(reading{event, true, .05, .04, kappa, s, 0})
		s.add(event)
	}
	step(true)
	near(t, "evidence for odds times 8", float64(r.evidence[0]), 5.925926, 1e-4)
	near(t, "evidence for odds times 64", float64(r.evidence[1]), 15.421687, 1e-4)
	step(true)
	near(t, "evidence for odds times 8 after the second", float64(r.evidence[0]), 14.798987, 1e-3)
	near(t, "evidence for odds times 64 after the second", float64(r.evidence[1]), 71.074419, 1e-3)
	s = seen{}
	step(false) // 0.7037/0.95 = 0.7407
	near(t, "evidence after another session's", float64(r.evidence[0]), .740741*15.798987, 1e-3)
	if r.events != 2 || r.of != 3 || r.shown != 2 {
		t.Errorf("the stretch has %d of %d, %d of which show the change", r.events, r.of, r.shown)
	}
	near(t, "expected events", float64(r.expected), .12, 1e-6)
	near(t, "limit", limit(1, 1e-4), 180_000, 1e-6)
	near(t, "limit of half a share", limit(.5, 1e-4), 360_000, 1e-6)
}

// What speaks for the baseline begins a new stretch. An expected rate that falls is tested by the
// inverse odds.
func TestStretchAndFall(t *testing.T) {
	var r running
	for range 5 {
		r.step(reading{false, true, .05, .05, kappa, seen{}, 0})
	}
	if r.step(reading{true, true, .05, .05, kappa, seen{}, 0}); r.events != 1 || r.of != 1 {
		t.Errorf("after five without the event the stretch has %d of %d, want 1 of 1", r.events, r.of)
	}
	near(t, "a rate of 0.5 with an eighth of its odds", changed(.5, 8, false), 1./9, 1e-9)
	near(t, "the ratio of its absence", (&reading{p: .5, kappa: kappa}).likelihood(changed(.5, 8, false)), 16./9, 1e-9)
	says := func(event bool, p float64, rises bool) bool {
		return (&reading{event: event, p: p, rises: rises}).shows()
	}
	if !says(false, .5, false) || says(false, .1, false) || says(true, .5, false) || !says(true, .1, true) || says(false, .1, true) {
		t.Error("shows is wrong")
	}
}

// Counts and sums stay within their types for as long as a change lasts.
func TestEvidenceIsBounded(t *testing.T) {
	var r running
	var s seen
	for range 70_000 {
		r.step(reading{true, true, .01, .01, kappa, s, 0})
		s.add(true)
	}
	if sum := r.sum(); math.IsInf(sum, 0) || math.IsNaN(sum) || sum < 1e20 {
		t.Errorf("the evidence is %v", sum)
	}
	if r.events != r.of || s.events != s.of {
		t.Errorf("%d of %d events, %d of %d of the session", r.events, r.of, s.events, s.of)
	}
}
