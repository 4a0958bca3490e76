package drift

import "math"

// The e-detector (Shin, Ramdas, Rinaldo: E-detectors, 2023): a Shiryaev-Roberts sum of likelihood
// ratios, M <- L(M+1), for each of two sizes of a change. The expected value of M after n decisions
// is at most n while the rate is within the bounds and sessions are as the model says, so an alarm
// at 1/a comes once in 1/a decisions at most. The model is an approximation: docs/DRIFT.md states
// the rate that was measured, not this theorem.
var oddsRatios = [...]float32{8, 64}

// mostEvidence bounds the sums while a change lasts.
const mostEvidence = 1e30

// running is the statistic of one test.
type running struct {
	evidence [len(oddsRatios)]float32 // the Shiryaev-Roberts sums
	stretch
	shown uint16 // observations of the stretch that show the change
}

// stretch is the time since a change probably began, for the sentence of an alert: the cumulative sum
// (CUSUM) of the same ratios was last at its least before it.
type stretch struct {
	cusum    float32
	expected float32 // events that the baseline leads to expect
	events   uint16
	of       uint16 // observations

	// Decisions that bear on the test's category, among all decisions since then: escalated ones for the tests
	// of autonomy, those that apply the value for the tests of declared values; 0 for the other tests.
	bearing, all uint16
}

// count counts a decision of any kind.
func (s *stretch) count(bears bool) {
	if s.all == math.MaxUint16 { // half of it has the same shares, and the same distances of observations
		s.bearing, s.all, s.events, s.of, s.expected = s.bearing/2, s.all/2, s.events/2, s.of/2, s.expected/2
	}
	s.all++
	if bears {
		s.bearing++
	}
}

// reading is an observation as one test sees it.
type reading struct {
	event, rises bool    // the test asks whether the rate of the event rises
	p            float64 // the least favourable rate that the baseline leaves open
	mean         float64 // the rate that it leads to expect
	kappa        float64 // concentration of the sessions' own rates
	seen         seen    // what the session has shown before
	beyond       figure  // as in observation
}

// seen is what a session has shown of a measure so far.
type seen struct{ events, of uint8 }

func (s *seen) add(event bool) {
	if s.of == math.MaxUint8 { // what comes now weighs as much as before: the share stays
		s.events, s.of = s.events/2, s.of/2
	}
	s.of++
	if event {
		s.events++
	}
}

// likelihood returns how much likelier the observation is at rate q than at rate p, in a session
// that has shown events in some observations so far (beta-binomial with concentration kappa).
func (o *reading) likelihood(q float64) float64 {
	if o.event {
		return (float64(q*o.kappa) + float64(o.seen.events)) / (float64(o.p*o.kappa) + float64(o.seen.events))
	}
	rest := float64(o.seen.of - o.seen.events)
	return (float64((1-q)*o.kappa) + rest) / (float64((1-o.p)*o.kappa) + rest)
}

// changed returns the rate whose odds are those of p times the ratio, or divided by it.
func changed(p float64, ratio float32, rises bool) float64 {
	odds := p / (1 - p)
	if rises {
		odds = float64(odds * float64(ratio))
	} else {
		odds /= float64(ratio)
	}
	return odds / (1 + odds)
}

// step adds an observation.
func (r *running) step(o reading) {
	for i, ratio := range oddsRatios {
		l := o.likelihood(changed(o.p, ratio, o.rises))
		r.evidence[i] = float32(min(mostEvidence, float64(l*(float64(r.evidence[i])+1))))
		if i == 0 {
			r.extend(l)
		}
	}
	if r.of == math.MaxUint16 { // the stretch is long: half of it has the same shares
		r.of, r.events, r.shown, r.expected = r.of/2, r.events/2, r.shown/2, r.expected/2
	}
	r.of++
	if o.event {
		r.events++
	}
	if o.shows() {
		r.shown++
	}
	r.expected = float32(float64(r.expected) + o.mean)
}

// begins reports whether the next observation begins a new stretch: nothing speaks for a change so far.
func (r *running) begins() bool { return r.cusum <= 1 }

// extend adds to the stretch, or begins a new one.
func (r *running) extend(l float64) {
	if r.begins() {
		r.stretch, r.shown = stretch{cusum: 1}, 0
	}
	r.cusum = float32(min(mostEvidence, float64(l*float64(r.cusum))))
}

// departs reports whether the events are more, or fewer, than the baseline leads to expect.
func (s *stretch) departs(rises bool) bool {
	return float32(s.events) != s.expected && rises == (float32(s.events) > s.expected)
}

// share returns what the stretch has shown.
func (s *stretch) share() share { return share{s.events, s.of} }

// tellingRate is the rate from which on the absence of an event says something.
const tellingRate = .2

// shows reports whether an observation is one that shows the change: an event whose rate rises, or
// the absence of one that was usual.
func (o *reading) shows() bool { return o.event == o.rises && (o.rises || o.p >= tellingRate) }

// rank returns how well the observation shows the change, for examples; 0 where it does not.
func (o *reading) rank() uint16 {
	switch {
	case o.event != o.rises:
		return 0
	case o.rises && o.beyond > 0:
		return uint16(o.beyond)
	}
	return uint16(figureOf(o.likelihood(changed(o.p, oddsRatios[0], o.rises))))
}

// telling reports whether the observation says something about the rate: an event, or its absence where it
// is not rare, at the baseline's rate or at rate q of the change.
func (o *reading) telling(q float64) bool { return o.event || max(o.p, q) >= seldom }

// sum returns the evidence for a change.
func (r *running) sum() float64 { return float64(r.evidence[0]) + float64(r.evidence[1]) }

// limit returns the evidence at which a test raises an alarm, so that all tests of a series
// together raise at most the given rate of false alarms, if the model holds.
func limit(share, falseAlarms float64) float64 {
	return families * float64(len(oddsRatios)) / float64(share*falseAlarms)
}
