package drift

import (
	"encoding/json"
	"fmt"

	"github.com/plumbline/plumbline/schema"
)

// version7 begins the encoding of a state under modes sessions and pinned, and the others began it before.
// They are binary. A state of the published rule is JSON, which begins with another byte.
const (
	version3 = 3
	version4 = 4 // a learning state is smaller
	version5 = 5 // the baseline has the values that its actions apply
	version6 = 6 // the traces that show a change best, instead of the newest
	version7 = 7 // a learning state is smaller still
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
	c := &codec{data: append(data, version7), version: version7}
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
	if len(data) > 0 && data[0] >= version3 && data[0] <= version7 {
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
	list(c, &s.detector.tests, int(tests), codeRunning)
	list(c, &s.detector.sessions, openSessions, codeSeen)
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

func codeParams(c *codec, p *Params) {
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
	c.float32(&s.cusum)
	c.float32(&s.expected)
	whole(c, &s.events)
	whole(c, &s.of)
	if c.version >= version6 {
		whole(c, &s.bearing)
		whole(c, &s.all)
	}
}

func codeSeen(c *codec, s *sessionSeen) {
	c.fixed64(&s.session)
	for i := range s.seen {
		whole(c, &s.seen[i].events)
		whole(c, &s.seen[i].of)
	}
}

func codeCondition(c *codec, k *condition) {
	c.digest(&k.id)
	whole(c, &k.first)
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
		whole(c, &j.test)
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
}

// codeExpectations codes what follows from the traces of the baseline, but for codeApplied.
func codeExpectations(c *codec, e *expectations) {
	c.digest(&e.source)
	whole(c, &e.Traces)
	list(c, &e.centroid.keys, maxKeys, (*codec).fixed64)
	list(c, &e.centroid.weights, maxKeys, (*codec).float32)
	c.float64(&e.centroid.length)
	c.float32(&e.usual)
	for i := range e.lows {
		whole(c, &e.lows[i])
	}
	c.flag(&e.full)
	for m := range e.rates {
		for k := range e.rates[m] {
			codeBounds(c, &e.rates[m][k])
		}
	}
	list(c, &e.actions, maxActions, func(c *codec, a *actionRates) {
		whole(c, &a.action)
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
		whole(c, &e.shares[m].events)
		whole(c, &e.shares[m].of)
	}
	c.flag(&e.declaresBenefit)
	c.flag(&e.scoresBenefit)
}

// codeApplied codes the values that the actions of the baseline apply.
func codeApplied(c *codec, e *expectations) {
	list(c, &e.applied, maxApplied, func(c *codec, a *appliedRates) {
		whole(c, &a.action)
		for i := range e.values {
			whole(c, &a.rate[i].mean)
			whole(c, &a.rate[i].low)
		}
	})
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
	for i := range t.sum {
		n := []byte{byte(t.sum[i])}
		c.bytes(n)
		t.sum[i] = int8(n[0])
	}
}

// encoded returns e, except for its id and mode, which Baseline has. What it applies comes last, and only if
// there is any: baselines of before have none, and keep their ids.
func (e *expectations) encoded() []byte {
	c := new(codec)
	codeExpectations(c, e)
	if len(e.applied) > 0 {
		codeApplied(c, e)
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
	if c.err == nil && (len(c.data) > 0 || len(e.centroid.keys) != len(e.centroid.weights)) {
		c.fail("the parts do not fit")
	}
	return e, c.err
}
