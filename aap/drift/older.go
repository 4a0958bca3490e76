package drift

import (
	"encoding/binary"
	"math/bits"
)

// older reads the learning states of versions 3 to 6. A learning state of version 3 has whole numbers, and the
// others have runs of bits.
type older struct{ bitRun }

func readLearning(c *codec, l *learning) {
	r := &older{bitRun{codec: c}}
	whole(c, &l.first)
	r.keys(l)
	c.fixed64(&l.declared)
	c.flag(&l.full)
	list(c, &l.actions, maxActions, func(c *codec, a *action) {
		whole(c, &a.hash)
		whole(c, &a.typ)
	})
	list(c, &l.sessions, maxSessions, func(c *codec, s *session) {
		if c.version == version3 {
			c.string(&s.id)
		} else {
			c.id(&s.id)
		}
		c.bytes(s.chain[:])
		c.at(&s.last)
		whole(c, &s.traces)
		if c.flag(&s.done); s.done {
			s.last = 0
		}
	})
	list(c, &l.shapes, maxMostTraces, func(c *codec, s *shape) {
		if c.version == version3 {
			c.fixed64(&s.features)
		} else {
			whole(c, &s.features)
		}
		whole(c, &s.facts)
		whole(c, &s.typ)
		whole(c, &s.action)
	})
	if c.version == version3 {
		list(c, &l.traces, maxMostTraces, readReduced3)
	} else {
		r.traces(l)
	}
	for k := range l.texts {
		for i := range l.texts[k] {
			r.texts(&l.texts[k][i])
		}
	}
	whole(c, &l.benefit)
}

// keys reads each key without what it begins with like the key before it.
func (r *older) keys(l *learning) {
	if r.version == version3 {
		list(r.codec, &l.keys, maxKeys, (*codec).string)
		return
	}
	before := ""
	list(r.codec, &l.keys, maxKeys, func(c *codec, key *string) {
		same := 0
		if whole(c, &same); same > len(before) {
			c.fail("a key with %d bytes of one that has %d", same, len(before))
			return
		}
		c.string(key)
		*key = before[:same] + *key
		before = *key
	})
}

func readReduced3(c *codec, r *reduced) {
	whole(c, &r.shape)
	whole(c, &r.session)
	c.float32(&r.confidence)
	r.figures[confidenceFigure] = figureOf(float64(r.confidence))
	for i := range r.figures {
		if i != confidenceFigure {
			whole(c, &r.figures[i])
		}
	}
}

// traces reads the traces by columns.
func (r *older) traces(l *learning) {
	n := 0
	if whole(r.codec, &n); n > maxMostTraces {
		r.fail("%d traces, want at most %d", n, maxMostTraces)
		return
	}
	if n > 0 {
		l.traces = make([]reduced, n)
	}
	shapes, sessions := r.below(n, len(l.shapes)), r.below(n, len(l.sessions))
	var texts []*reduced // of the traces that have one
	for i := range l.traces {
		t := &l.traces[i]
		t.shape, t.session = shapes[i], uint8(sessions[i])
		if r.err == nil && l.shapes[t.shape].facts.has(hasText) {
			texts = append(texts, t)
		}
	}
	lengths, wordings := r.between(n), r.between(len(texts))
	for i, t := range texts {
		t.figures[wordingFigure] = figure(wordings[i])
	}
	confidences := readColumn(r, n, (*codec).float32)
	costs, benefits := readColumn(r, n, readFixed16), readColumn(r, n, readFixed16)
	if r.err != nil {
		return
	}
	for i := range l.traces {
		t := &l.traces[i]
		t.confidence = confidences[i]
		t.figures[lengthFigure], t.figures[costFigure], t.figures[benefitFigure] = figure(lengths[i]), figure(costs[i]), figure(benefits[i])
		t.figures[confidenceFigure] = figureOf(float64(t.confidence))
	}
}

func (r *older) texts(t *texts) {
	if whole(r.codec, &t.count); t.count == 0 {
		return
	}
	var numbers [len(t.sum)]uint16 // small numbers of either sign are small
	if r.version == version3 {
		for i := range numbers {
			whole(r.codec, &numbers[i])
		}
	} else {
		r.rice(numbers[:])
	}
	for i, n := range numbers {
		t.sum[i] = signed(n)
	}
}

func readFixed16(c *codec, v *uint16) {
	if part := c.next(2); part != nil {
		*v = binary.LittleEndian.Uint16(part)
	}
}

// below reads n numbers below limit.
func (r *older) below(n, limit int) []uint16 {
	numbers, width := make([]uint16, n), bits.Len(uint(max(limit, 1)-1))
	for i := range numbers {
		if numbers[i] = r.bits(0, width); int(numbers[i]) >= limit {
			r.fail("the number %d, want less than %d", numbers[i], limit)
		}
	}
	r.align()
	return numbers
}

// between reads n numbers between the least and the greatest of them.
func (r *older) between(n int) []uint16 {
	var least, greatest uint16
	readFixed16(r.codec, &least)
	if readFixed16(r.codec, &greatest); greatest < least {
		r.fail("numbers from %d to %d", least, greatest)
	}
	numbers := r.below(n, int(greatest)-int(least)+1)
	for i := range numbers {
		numbers[i] += least
	}
	return numbers
}

// readColumn reads a column of n elements: the different values, and for each element the place of its value.
func readColumn[T any](r *older, n int, each func(c *codec, v *T)) []T {
	var values []T
	list(r.codec, &values, n, each)
	places, column := r.below(n, len(values)), make([]T, n)
	if r.err == nil {
		for i, place := range places {
			column[i] = values[place]
		}
	}
	return column
}

// Before version 8 there was no test of the rate of escalations of all decisions: those behind had lower numbers.
const (
	olderRise  = test(escalationRate)    // the number of the next one then
	olderFalls = escalationRateFalls - 1 // and of the first declared value
)

// olderTest returns the number that a test had before version 8. newerTest reverses it.
func olderTest(t test) test {
	switch {
	case t > escalationRateFalls:
		return t - 2
	case t > test(escalationRate):
		return t - 1
	}
	return t
}

func newerTest(t test) test {
	switch {
	case t >= olderFalls:
		return t + 2
	case t >= olderRise:
		return t + 1
	}
	return t
}

// codeTest codes the number of a test.
func codeTest(c *codec, t *test) {
	n := *t
	if c.version < version8 {
		n = olderTest(n)
	}
	if whole(c, &n); c.version < version8 {
		n = newerTest(n)
	}
	*t = n
}

// codeTestSet codes a set of tests.
func codeTestSet(c *codec, s *testSet) {
	if c.version >= version8 {
		whole(c, s)
		return
	}
	var older testSet
	for t := range streak + 1 {
		if s.has(t) && t != test(escalationRate) && t != escalationRateFalls {
			older |= 1 << olderTest(t)
		}
	}
	whole(c, &older)
	*s = 0
	for t := range olderTest(streak) + 1 {
		if older.has(t) {
			*s |= 1 << newerTest(t)
		}
	}
}

// codeTests codes what the tests have found.
func codeTests(c *codec, all *[]running) {
	if c.version >= version8 {
		list(c, all, int(tests), codeRunning)
		return
	}
	var older []running
	for t := range *all {
		if test(t) != test(escalationRate) && test(t) != escalationRateFalls {
			older = append(older, (*all)[t])
		}
	}
	list(c, &older, int(tests)-2, codeRunning)
	if !c.reading || len(older) == 0 {
		return
	}
	*all = make([]running, len(older)+2)
	for t := range older {
		(*all)[newerTest(test(t))] = older[t]
	}
}
