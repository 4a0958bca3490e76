package drift

import (
	"math"
	"slices"
)

// best is how many traces an alert names.
const best = 3

// places is how many traces the examples of all tests of a series are at most. Where more are needed, the
// test with the least evidence outside the open condition forgets its own.
const places = 12

// example is a trace that shows the change of a test.
type example struct {
	rank  uint16 // how well it shows the change, above 0; 0: there is none
	trace uint8  // its place among the traces of the detector
}

// examples are the traces that show the change of a test best since it began, the best one first, and the
// newer one of two that show it as well. What the test measures ranks them: a figure by its distance from
// the baseline's tenth, the similarity by how low it is, and any other event by its likelihood ratio.
type examples [best]example

func (e *examples) admit(rank uint16) bool { return rank >= e[best-1].rank }

func (e *examples) add(rank uint16, place uint8) {
	at := slices.IndexFunc(e[:], func(other example) bool { return rank >= other.rank })
	if at >= 0 {
		copy(e[at+1:], e[at:])
		e[at] = example{rank, place}
	}
}

// ranked returns the rank of a similarity, the higher the lower it is.
func ranked(similarity float64) uint16 { return uint16(math.Round((1 - similarity) * math.MaxUint16)) }

// similarity returns the similarity of an example of the streak, whose error is below 0.00001.
func (e example) similarity() float64 { return 1 - float64(e.rank)/math.MaxUint16 }

// ids returns the ids of the examples.
func (d *detector) ids(of examples) (ids []string) {
	for _, each := range of {
		if each.rank > 0 {
			ids = append(ids, d.traces[each.trace])
		}
	}
	return ids
}

// shower adds one trace to the examples of the tests whose change it shows.
type shower struct {
	traceID string
	place   int // among the traces of the detector; -1 before it has one
}

// show adds the trace to the examples of a test, and to those of the condition, where the test is in it.
func (d *detector) show(trace *shower, t test, rank uint16, c *condition) {
	own, lasting := &d.examples[t], c.examples(t)
	if !own.admit(rank) && (lasting == nil || !lasting.admit(rank)) {
		return
	}
	if trace.place < 0 {
		if trace.place = d.place(c); trace.place < 0 {
			return
		}
		d.traces[trace.place] = trace.traceID
	}
	own.add(rank, uint8(trace.place))
	if lasting != nil {
		lasting.add(rank, uint8(trace.place))
	}
}

// place returns a place for a trace, or -1 where the condition needs all of them.
func (d *detector) place(c *condition) int {
	for {
		used := d.used(c)
		for i := range d.traces {
			if used>>i&1 == 0 {
				return i
			}
		}
		if len(d.traces) < places {
			d.traces = append(d.traces, "")
			return len(d.traces) - 1
		}
		if !d.forget(c) {
			return -1
		}
	}
}

// used returns the places of the traces that are examples, a bit each.
func (d *detector) used(c *condition) (set uint32) {
	add := func(of *examples) {
		for _, each := range of {
			if each.rank > 0 {
				set |= 1 << each.trace
			}
		}
	}
	for i := range d.examples {
		add(&d.examples[i])
	}
	if c != nil {
		for i := range c.joined {
			add(&c.joined[i].examples)
		}
	}
	return set
}

// forget removes the examples of the test with the least evidence. It reports whether there was one that is
// not in the condition.
func (d *detector) forget(c *condition) bool {
	least := -1
	for t := range d.tests {
		if d.examples[t] == (examples{}) || c != nil && c.has(test(t)) {
			continue
		}
		if least < 0 || d.tests[t].sum() < d.tests[least].sum() {
			least = t
		}
	}
	if least >= 0 {
		d.examples[least] = examples{}
	}
	return least >= 0
}

// code codes as many as there are.
func (e *examples) code(c *codec) {
	for i := range e {
		known := e[i].rank > 0
		if c.flag(&known); !known {
			return
		}
		whole(c, &e[i].rank)
		if whole(c, &e[i].trace); e[i].trace >= places || e[i].rank == 0 {
			c.fail("an example in place %d, of rank %d", e[i].trace, e[i].rank)
			return
		}
	}
}

// codeExamples codes the examples of all tests, and the traces that are examples.
func codeExamples(c *codec, d *detector, open *condition) {
	if used := d.used(open); !c.reading {
		for i := range d.traces {
			if used>>i&1 == 0 {
				d.traces[i] = ""
			}
		}
	}
	list(c, &d.traces, places, (*codec).traceID)
	var some testSet
	for t := range d.examples {
		if d.examples[t][0].rank > 0 {
			some |= 1 << t
		}
	}
	codeTestSet(c, &some)
	for t := range d.examples {
		if some.has(test(t)) {
			d.examples[t].code(c)
		}
	}
}

// codeTellings reads the traces that older versions kept: the newest that show something.
func (s *State) codeTellings(c *codec) {
	type telling struct {
		traceID string
		shows   testSet
	}
	var old []telling
	list(c, &old, 6, func(c *codec, t *telling) {
		c.string(&t.traceID)
		codeTestSet(c, &t.shows)
	})
	for i, o := range old {
		s.detector.traces = append(s.detector.traces, o.traceID)
		for t := range streak { // the similarities follow later
			if o.shows.has(t) {
				s.detector.examples[t].add(1, uint8(i))
			}
		}
	}
}

// codeLow reads the traces of low similarity that older versions kept, and gives the tests of the open
// condition the traces of that time.
func (s *State) codeLow(c *codec) {
	type lowTrace struct {
		id    string
		score float64
	}
	var old []lowTrace
	list(c, &old, best, func(c *codec, l *lowTrace) {
		c.string(&l.id)
		c.float64(&l.score)
	})
	for _, o := range old {
		s.detector.traces = append(s.detector.traces, o.id)
		s.detector.examples[streak].add(ranked(o.score), uint8(len(s.detector.traces)-1))
	}
	if s.open != nil && c.reading {
		for i := range s.open.joined {
			if j := &s.open.joined[i]; j.test <= streak {
				j.examples = s.detector.examples[j.test]
			}
		}
	}
	if s.Streak == 0 && c.reading {
		s.detector.examples[streak] = examples{}
	}
}
