package drift

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"

	"github.com/plumbline/plumbline/schema"
)

// version8 begins the encoding of a state under modes sessions and pinned. Earlier versions began it with the others.
// They are binary. A state of the published rule is JSON, which begins with another byte.
const (
	version3 = 3
	version4 = 4 // a learning state is smaller
	version5 = 5 // the baseline has the values that its actions apply
	version6 = 6 // the traces that show a change best, instead of the newest
	version7 = 7 // states are smaller still, above all learning ones
	version8 = 8 // the rate of escalations of all decisions is measured
)

// Marshal returns s encoded: Append(nil).
func (s *State) Marshal() ([]byte, error) { return s.Append(nil) }

// Append appends s to data. It is binary, about 2 KB for an ordinary agent with a baseline, or JSON
// under modes first and rolling.
func (s *State) Append(data []byte) ([]byte, error) {
	if s.letter != nil {
		letter, err := s.marshalLetter()
		return append(data, letter...), err
	}
	c := &codec{data: append(data, version8), version: version8}
	s.code(c)
	if c.err != nil {
		return nil, fmt.Errorf("encode drift state: %w", c.err)
	}
	return c.data, nil
}

// UnmarshalState reads the result of Marshal, of this version or an older one.
func UnmarshalState(data []byte) (*State, error) {
	var s *State
	var err error
	if len(data) > 0 && data[0] >= version3 && data[0] <= version8 {
		s, err = unmarshalBinary(data[1:], data[0])
	} else {
		s, err = unmarshalLetter(data)
	}
	if err != nil {
		return nil, fmt.Errorf("decode drift state: %w", err)
	}
	return s, nil
}

func unmarshalBinary(data []byte, version uint8) (*State, error) {
	c, s := &codec{data: data, version: version, reading: true}, new(State)
	s.code(c)
	switch {
	case c.err != nil:
	case len(c.data) > 0:
		c.fail("%d bytes follow it", len(c.data))
	default:
		s.check(c)
	}
	if c.err != nil {
		return nil, c.err
	}
	return s, nil
}

// check fails for a state that no series has: an index out of bounds would be found only later.
func (s *State) check(c *codec) {
	tests := 0
	if s.expected != nil {
		tests = int(fixedTests) + len(s.expected.values)
		if len(s.expected.centroid.keys) != len(s.expected.centroid.weights) {
			c.fail("%d keys but %d weights", len(s.expected.centroid.keys), len(s.expected.centroid.weights))
		}
	}
	if len(s.detector.tests) != tests {
		c.fail("%d tests, want %d", len(s.detector.tests), tests)
	}
	if s.learning != nil {
		s.learning.check(c)
	}
	if s.detector.used(s.open)>>len(s.detector.traces) != 0 {
		c.fail("an example without a trace")
	}
	if s.open == nil {
		return
	}
	if len(s.open.joined) == 0 || tests == 0 {
		c.fail("a condition without a test")
	}
	for _, j := range append([]joined{{test: s.open.first}}, s.open.joined...) {
		if int(j.test) >= tests && j.test != streak {
			c.fail("a condition of test %d", j.test)
		}
	}
}

func (l *learning) check(c *codec) {
	for i := range l.traces {
		if r := &l.traces[i]; int(r.shape) >= len(l.shapes) || int(r.session) >= len(l.sessions) {
			c.fail("trace %d has no shape or no session", i)
		}
	}
	for _, shape := range l.shapes {
		if int(shape.action) > maxActions || int(shape.typ) >= actionTypes || shape.features>>len(l.keys) != 0 {
			c.fail("a shape without an action, or with a feature that has no key")
		}
	}
	for _, a := range l.actions {
		if int(a.typ) >= actionTypes {
			c.fail("an action of no type")
		}
	}
}

func (s *State) code(c *codec) {
	whole(c, &s.Traces)
	codeParams(c, &s.Params)
	optional(c, &s.learning, codeLearning)
	optional(c, &s.expected, codeCurrent)
	codeTests(c, &s.detector.tests)
	codeSeen(c, &s.detector)
	if c.version < version6 {
		s.codeTellings(c)
	} else {
		codeExamples(c, &s.detector, s.open)
	}
	optional(c, &s.open, codeCondition)
	optional(c, &s.lapsed, codeJSON[schema.DriftAlert])
	whole(c, &s.Streak)
	c.flag(&s.raised)
	list(c, &s.within, maxStreakSessions, (*codec).fixed64)
	if c.version < version6 {
		s.codeLow(c)
	}
}

// commonParams were the defaults when version 7 was made. They never change here: a state with them has one byte.
var commonParams = Params{
	SimilarityThreshold: .3, Sustained: 3, Mode: ModeSessions, Sessions: 10, LeastTraces: 50, MostTraces: 200,
	StreakSessions: 2, FalseAlarms: 1e-4, Window: 50, Profile: ProfileSpec,
}

func codeParams(c *codec, p *Params) {
	if c.version >= version7 {
		common := *p == commonParams
		if c.flag(&common); common {
			*p = commonParams
			return
		}
	}
	c.float64(&p.SimilarityThreshold)
	whole(c, &p.Sustained)
	c.string((*string)(&p.Mode))
	whole(c, &p.Sessions)
	whole(c, &p.LeastTraces)
	whole(c, &p.MostTraces)
	whole(c, &p.StreakSessions)
	c.float64(&p.FalseAlarms)
	whole(c, &p.Window)
	c.string((*string)(&p.Profile))
}

// codeJSON codes a value as JSON with its length. It is for what a state seldom has.
func codeJSON[T any](c *codec, v *T) {
	var text string
	if !c.reading {
		data, err := json.Marshal(v)
		if err != nil {
			c.fail("%w", err)
		}
		text = string(data)
	}
	c.string(&text)
	if c.reading && c.err == nil {
		if err := json.Unmarshal([]byte(text), v); err != nil {
			c.fail("%w", err)
		}
	}
}

func codeRunning(c *codec, r *running) {
	for i := range r.evidence {
		c.float32(&r.evidence[i])
	}
	codeStretch(c, &r.stretch)
	whole(c, &r.shown)
}

func codeStretch(c *codec, s *stretch) {
	if c.version >= version7 { // most tests have none
		none := *s == stretch{}
		if c.flag(&none); none {
			return
		}
	}
	c.float32(&s.cusum)
	c.float32(&s.expected)
	whole(c, &s.events)
	whole(c, &s.of)
	if c.version >= version6 {
		whole(c, &s.bearing)
		whole(c, &s.all)
	}
}

// codeSeen codes what sessions have shown. A session has as many decisions of most measures, and few events.
func codeSeen(c *codec, d *detector) {
	list(c, &d.sessions, openSessions, func(c *codec, s *sessionSeen) {
		c.fixed64(&s.session)
		for i := range s.seen {
			if c.version < version7 && measure(i) != escalationRate {
				whole(c, &s.seen[i].events)
				whole(c, &s.seen[i].of)
			}
		}
	})
	if c.version < version7 || len(d.sessions) == 0 {
		return
	}
	a := c.arithmetic()
	var same, none [measures + 1]chance
	for i := range d.sessions {
		before := uint8(0)
		for m := range d.sessions[i].seen {
			if c.version < version8 && measure(m) == escalationRate {
				continue
			}
			s := &d.sessions[i].seen[m]
			if a.flag(&same[m], s.of == before) {
				s.of = before
			} else {
				s.of = uint8(a.raw(uint32(s.of), 8))
			}
			before = s.of
			if !a.flag(&none[m], s.events == 0) {
				s.events = uint8(a.raw(uint32(s.events), 8))
			}
		}
	}
	a.end()
}

func codeCondition(c *codec, k *condition) {
	c.digest(&k.id)
	codeTest(c, &k.first)
	c.time(&k.openedAt)
	whole(c, &k.revision)
	whole(c, &k.count)
	whole(c, &k.next)
	c.string(&k.last)
	if c.version < version6 {
		var best3 []string
		list(c, &best3, best, (*codec).string)
	}
	list(c, &k.joined, int(streak)+1, func(c *codec, j *joined) {
		codeTest(c, &j.test)
		whole(c, &j.quiet)
		c.float32(&j.back)
		codeStretch(c, &j.height)
		if c.version >= version6 {
			j.examples.code(c)
		}
	})
}

// codeCurrent codes the baseline that is in force.
func codeCurrent(c *codec, e *expectations) {
	c.digest(&e.ID)
	c.string((*string)(&e.Mode))
	codeExpectations(c, e)
	if c.version >= version5 {
		codeApplied(c, e)
	}
	if c.version >= version8 {
		codeEscalationRate(c, e)
	}
}

// codeExpectations codes what follows from the traces of the baseline, but for codeApplied and codeEscalationRate.
func codeExpectations(c *codec, e *expectations) {
	c.digest(&e.source)
	whole(c, &e.Traces)
	list(c, &e.centroid.keys, maxKeys, (*codec).fixed64)
	list(c, &e.centroid.weights, maxKeys, func(c *codec, w *float32) { codeWeight(c, w, e.Traces) })
	c.float64(&e.centroid.length)
	c.float32(&e.usual)
	for i := range e.lows {
		whole(c, &e.lows[i])
	}
	c.flag(&e.full)
	for m := range e.rates[:escalationRate] {
		for k := range e.rates[m] {
			codeBounds(c, &e.rates[m][k])
		}
	}
	list(c, &e.actions, maxActions, func(c *codec, a *actionRates) {
		codeHash(c, &a.action)
		codeBounds(c, &a.escalations)
		codeBounds(c, &a.failures)
	})
	list(c, &e.values, maxValues, func(c *codec, v *valueRates) {
		c.string(&v.key)
		for i := range v.rate {
			codeBounds(c, &v.rate[i])
		}
	})
	for k := range e.cuts {
		for i := range e.cuts[k] {
			whole(c, &e.cuts[k][i].low)
			whole(c, &e.cuts[k][i].high)
		}
	}
	for k := range e.texts {
		codeText(c, &e.texts[k])
	}
	for m := range e.shares {
		if measure(m) != escalationRate {
			codeShare(c, &e.shares[m])
		}
	}
	c.flag(&e.declaresBenefit)
	c.flag(&e.scoresBenefit)
}

func codeShare(c *codec, s *share) {
	whole(c, &s.events)
	whole(c, &s.of)
}

// codeEscalationRate codes the rate of escalations of all decisions. It is unknown in a baseline of a version before 8.
func codeEscalationRate(c *codec, e *expectations) {
	b := e.rates[escalationRate][0]
	if codeBounds(c, &b); b.known() {
		codeShare(c, &e.shares[escalationRate])
		if whole(c, &e.alike); e.alike < figureOf(leastOfRate) || e.alike > figureOf(kappa) {
			c.fail("a concentration of %g", e.alike.value())
		}
		e.rates[escalationRate] = [kinds]bounds{b, b}
	}
}

// codeWeight codes a weight of the centroid: of most keys the share of the baseline's traces that have it.
func codeWeight(c *codec, w *float32, traces int) {
	if c.version < version7 { // as in the ids of baselines
		c.float32(w)
		return
	}
	of := func(n int) float32 { return float32(float64(n-1) / float64(max(1, traces))) }
	n := 1 // 0 where it is no share
	if share := float64(*w) * float64(traces); share >= 0 && share <= maxMostTraces {
		n += int(math.Round(share))
	}
	if math.Float32bits(of(n)) != math.Float32bits(*w) {
		n = 0
	}
	if whole(c, &n); n == 0 {
		c.float32(w)
	} else {
		*w = of(n)
	}
}

// codeApplied codes the values that the actions of the baseline apply.
func codeApplied(c *codec, e *expectations) {
	list(c, &e.applied, maxApplied, func(c *codec, a *appliedRates) {
		codeHash(c, &a.action)
		for i := range e.values {
			whole(c, &a.rate[i].mean)
			whole(c, &a.rate[i].low)
		}
	})
}

// codeHash codes the hash of an action.
func codeHash(c *codec, hash *uint32) {
	if c.version < version7 { // as in the ids of baselines
		whole(c, hash)
	} else if !c.reading {
		c.data = binary.LittleEndian.AppendUint32(c.data, *hash)
	} else if part := c.next(4); part != nil {
		*hash = binary.LittleEndian.Uint32(part)
	}
}

// codeBounds codes rates that are all unknown in one byte.
func codeBounds(c *codec, b *bounds) {
	whole(c, &b.mean)
	if b.mean != 0 {
		whole(c, &b.high)
		whole(c, &b.low)
	}
}

func codeText(c *codec, t *textSum) {
	c.float32(&t.length)
	if t.length == 0 {
		return
	}
	if c.version < version7 { // as in the ids of baselines
		for i := range t.sum {
			n := []byte{byte(t.sum[i])}
			c.bytes(n)
			t.sum[i] = int8(n[0])
		}
		return
	}
	var numbers [len(t.sum)]uint16
	for i, n := range t.sum {
		numbers[i] = unsigned(int16(n))
	}
	r := bitRun{codec: c}
	r.rice(numbers[:])
	for i, n := range numbers {
		t.sum[i] = int8(signed(n))
	}
}

// encoded returns e, except for its id and mode, which Baseline has. What it applies and the rate of escalations come
// last, and only if they are known: earlier baselines lack them, and keep their ids.
func (e *expectations) encoded() []byte {
	c, rate := new(codec), e.rates[escalationRate][0].known()
	codeExpectations(c, e)
	if len(e.applied) > 0 || rate {
		codeApplied(c, e)
	}
	if rate {
		codeEscalationRate(c, e)
	}
	return c.data
}

// decodeExpectations reads the result of encoded.
func decodeExpectations(data []byte) (*expectations, error) {
	c, e := &codec{data: data, reading: true}, new(expectations)
	codeExpectations(c, e)
	if c.err == nil && len(c.data) > 0 {
		codeApplied(c, e)
	}
	if c.err == nil && len(c.data) > 0 {
		codeEscalationRate(c, e)
	}
	if c.err == nil && (len(c.data) > 0 || len(e.centroid.keys) != len(e.centroid.weights)) {
		c.fail("the parts do not fit")
	}
	return e, c.err
}
