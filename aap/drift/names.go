package drift

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/schema"
)

// similarityName is the name of the streak of section 8.2 among an alert's measures.
const similarityName = "similarity"

// define returns the definition of a test of this baseline.
func (s *State) define(t test) definition {
	if t < fixedTests {
		return catalogue[t]
	}
	value := strings.TrimPrefix(s.expected.values[t-fixedTests].key, valuePrefix)
	return definition{
		name: "value_down:" + value, indicator: "declared_value_decrease", share: t.share(len(s.detector.tests)), floor: valueFloor,
		what: "Use of the declared value " + value, of: "decisions other than denials", says: schema.ValueDrift,
	}
}

// share returns the test's share of a family's false alarms, where a series has so many tests.
func (t test) share(tests int) float64 {
	if t < fixedTests {
		return catalogue[t].share
	}
	return 1 / float64(max(4, tests-int(fixedTests)))
}

func (s *State) name(t test) string {
	if t == streak {
		return similarityName
	}
	return s.define(t).name
}

// direction returns the category of AAP section 8.5: that of the first test that has one, in the
// order in which the tests crossed. A new tool is an expansion of autonomy only where actions outside
// bounded_actions are not escalated. Denials, errors, costs, more escalations and the similarity
// alone are none. Text is a category only where nothing but text changed, and a condition in which
// escalations rise, however little, is not an expansion of autonomy.
func (s *State) direction(c *condition) schema.Direction {
	textOnly := true
	for _, j := range c.joined {
		textOnly = textOnly && j.test != streak && s.says(j.test) == schema.CommunicationDrift
	}
	for _, j := range c.joined {
		switch says := s.says(j.test); {
		case says == schema.UnknownDirection,
			says == schema.CommunicationDrift && !textOnly,
			says == schema.AutonomyExpansion && s.escalatesMore(c),
			j.test >= fixedTests && !s.givenUp(&j),
			j.test == test(newTools) && !c.has(test(unescalated)):
		default:
			return says
		}
	}
	return schema.UnknownDirection
}

// escalatesMore reports whether escalations rise in a condition: they are one of its tests, or a greater share
// of all decisions since a change of autonomy began is escalated than of the baseline's.
func (s *State) escalatesMore(c *condition) bool {
	base := s.expected.shares[escalations]
	return c.has(test(escalations)) || c.has(test(escalationRate)) || slices.ContainsFunc(c.joined, func(j joined) bool {
		return j.test < fixedTests && share{j.height.bearing, j.height.all}.value() > base.value()
	})
}

// givenUp reports whether a declared value is applied less often in all decisions that are no denial, of the
// actions that the baseline has often, and not only in those of an action in which it was usual.
func (s *State) givenUp(j *joined) bool {
	m, _ := j.test.of()
	now := share{j.height.bearing, j.height.all}
	_, most := wilson(now.value(), float64(max(1, now.of)), 2)
	base := s.expected.shares[m].value()
	return now.of > 0 && now.value() < base && most < base // a sum of rounded numbers can be below 1 where all apply it
}

// says returns the category of a test. A lower confidence counts as less principal_benefit only
// where the card declares it and the baseline does not score it, as in the published rules.
func (s *State) says(t test) schema.Direction {
	switch {
	case t == streak:
		return schema.UnknownDirection
	case t == test(confidenceDown) && (!s.expected.declaresBenefit || s.expected.scoresBenefit):
		return schema.UnknownDirection
	}
	return s.define(t).says
}

// change is what a test has found: two shares, and the decisions of the second.
type change struct {
	definition
	verb     string
	base     share
	height   stretch
	last     string // "the last " while the change is at its height
	contrary bool   // the shares do not show the change, or are not of the same decisions: the event is usual in some actions
}

func (s *State) change(j *joined) change {
	m, rises := j.test.of()
	c := change{definition: s.define(j.test), verb: "fell", base: s.expected.shares[m], height: j.height}
	if rises {
		c.verb = "rose"
	}
	if j.height == s.detector.tests[j.test].stretch {
		c.last = "the last "
	}
	now := j.height.share()
	c.contrary = rises != (now.value() > c.base.value()) || percent(now) == percent(c.base) || j.test == escalationsFall
	return c
}

// sentence says what changed, from what to what.
func (c change) sentence() string {
	now := c.height.share()
	switch {
	case c.base.of == 0:
		return fmt.Sprintf("%s %s to %s (%d of %s%d %s); the baseline has no %s.",
			c.what, c.verb, percent(now), now.events, c.last, now.of, c.definition.of, c.definition.of)
	case c.contrary:
		return fmt.Sprintf("%s %s: %d of %s%d %s, where the baseline leads to expect %.1f.",
			c.what, c.verb, now.events, c.last, now.of, c.definition.of, c.height.expected)
	}
	return fmt.Sprintf("%s %s from %s of %s (%d of %d in the baseline) to %s (%d of %s%d).",
		c.what, c.verb, percent(c.base), c.definition.of, c.base.events, c.base.of, percent(now), now.events, c.last, now.of)
}

func percent(s share) string { return fmt.Sprintf("%.0f %%", 100*s.value()) }

// summary says in one sentence what changed, or that it is as before.
func (s *State) summary(c *condition, state schema.AlertState) string {
	j, what := c.told(), "Similarity to the baseline"
	if j.test != streak {
		what = s.define(j.test).what
	}
	shown := "the change"
	if len(c.joined) > 1 { // the condition's traces are counted, not those of each measure
		shown = "a change of one of the alert's measures"
	}
	switch {
	case state == schema.AlertClosed && !j.asBefore(c.count):
		return fmt.Sprintf("%s: none of the last %d traces showed a change, after %d traces that showed %s.", what, j.silence(), c.count, shown)
	case state == schema.AlertClosed:
		return fmt.Sprintf("%s: again as the baseline leads to expect, after %d traces that showed %s.", what, c.count, shown)
	case j.test == streak:
		return fmt.Sprintf("Similarity to the baseline fell from %.2f, the mean of the baseline's own traces, to %s.", s.expected.usual, s.lowest(&j.examples))
	}
	return s.change(j).sentence()
}

// lowestOf returns the lowest similarity of the condition; the threshold where it is not known.
func (s *State) lowestOf(of *examples) float64 {
	if of[0].rank == 0 {
		return s.Params.SimilarityThreshold
	}
	return of[0].similarity()
}

// lowest lists the lowest similarities of the condition, those of the traces that its alert names.
func (s *State) lowest(of *examples) string {
	if of[0].rank == 0 {
		return fmt.Sprintf("less than %g", s.Params.SimilarityThreshold)
	}
	var texts []string
	for _, each := range of {
		if each.rank > 0 {
			texts = append(texts, fmt.Sprintf("%.2f", each.similarity()))
		}
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return "as low as " + strings.Join(texts[:len(texts)-1], ", ") + " and " + texts[len(texts)-1]
}

// indicators returns an indicator for each test in the condition, never nil.
func (s *State) indicators(c *condition) []schema.Indicator {
	list := []schema.Indicator{}
	for i := range c.joined {
		j := &c.joined[i]
		if j.test == streak {
			list = append(list, schema.Indicator{
				Indicator: SimilarityTrend, Baseline: round2(float64(s.expected.usual)), Current: round2(s.lowestOf(&j.examples)),
				Description: "Similarity to the baseline fell from " + fmt.Sprintf("%.2f", s.expected.usual) + " to " + s.lowest(&j.examples),
			})
			continue
		}
		ch := s.change(j)
		base := ch.base.value()
		if j.test == escalationsFall { // of the same decisions as the current rate
			base = float64(ch.height.expected) / float64(max(1, ch.height.of))
		}
		list = append(list, schema.Indicator{
			Indicator: ch.indicator, Baseline: round2(base),
			Current: round2(ch.height.share().value()), Description: ch.sentence(),
		})
	}
	return list
}
