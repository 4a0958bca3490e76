package drift

import (
	"math"

	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

// facts are the yes-and-no facts about a decision that the measures read.
type facts uint16

const (
	hasCard facts = 1 << iota
	inside
	named
	escalated
	undeclared
	denies
	acts
	executed // what the action really did is known
	failed
	hasConfidence
	hasBenefit
	hasText // the text and the baseline's texts can be compared
)

func (f facts) has(all facts) bool { return f&all == all }

func factsOf(x *Sample) (f facts) {
	for _, fact := range [...]struct {
		holds bool
		fact  facts
	}{
		{x.HasCard, hasCard}, {x.Inside, inside}, {x.Named, named}, {x.Escalated, escalated}, {x.Undeclared > 0, undeclared},
		{x.Denies(), denies}, {x.Kind() == Acts, acts}, {x.HasExecution, executed}, {x.Error, failed},
		{x.HasConfidence, hasConfidence}, {x.HasBenefit, hasBenefit},
	} {
		if fact.holds {
			f |= fact.fact
		}
	}
	return f
}

func (f facts) kind() Kind {
	if f.has(acts) {
		return Acts
	}
	return Answers
}

// actionTypes is the number of action types; a type that is none of AAP section 5.4 is the last.
const actionTypes = 5

func typeOf(x *Sample) uint8 {
	switch schema.ActionType(x.Action) {
	case schema.ActionRecommend:
		return 0
	case schema.ActionExecute:
		return 1
	case schema.ActionEscalate:
		return 2
	case schema.ActionDeny:
		return 3
	}
	return 4
}

// figure is a number of 0 or more with 8 binary digits, in the order of the numbers: the upper half
// of a float32. Integers up to 256 are exact.
type figure uint16

func figureOf(x float64) figure { return figure(math.Float32bits(float32(max(0, x))) >> 16) }

func (f figure) value() float64 { return float64(math.Float32frombits(uint32(f) << 16)) }

// The figures that are compared with the baseline's lowest and highest tenth.
const (
	costFigure = iota
	lengthFigure
	confidenceFigure
	benefitFigure
	wordingFigure // similarity of the text to the baseline's
	figures
)

// cut is the lowest and the highest tenth of a figure in the baseline.
type cut struct{ low, high figure }

// decision is a trace as the measures see it: one of the baseline, or one that is compared.
type decision struct {
	facts   facts
	typ     uint8
	figures [figures]figure
	new     bool  // no other session of the baseline has an action of this name
	values  uint8 // the measured declared values that were applied, a bit each
}

// decisionOf returns x without what the baseline says: new, values, and the figure of the wording.
func decisionOf(x *Sample) decision {
	d := decision{facts: factsOf(x), typ: typeOf(x)}
	d.figures[costFigure] = figureOf(float64(x.Cost))
	d.figures[lengthFigure] = figureOf(float64(x.Length))
	d.figures[confidenceFigure] = figureOf(x.Confidence)
	d.figures[benefitFigure] = figureOf(x.Benefit)
	return d
}

// observe returns whether the decision shows the event of a measure. known is false where the
// trace does not say: it is no observation then.
func (d *decision) observe(m measure, cuts *[figures]cut) (event, known bool) {
	f := d.facts
	below := func(i int) bool { return d.figures[i] < cuts[i].low }
	above := func(i int) bool { return d.figures[i] > cuts[i].high }
	switch m {
	case denials:
		return f.has(denies), true
	case unescalated: // a refusal does nothing outside the envelope
		return !f.has(escalated), f.has(hasCard) && !f.has(inside) && !f.has(denies)
	case escalations, escalationRate:
		return f.has(escalated), true
	case undeclaredValues:
		return f.has(undeclared), f.has(hasCard)
	case newTools:
		return d.new && !f.has(named), f.has(hasCard)
	case failures:
		return f.has(failed), f.has(executed | acts)
	case costDown:
		return below(costFigure), f.has(executed)
	case costUp:
		return above(costFigure), f.has(executed)
	case shorter:
		return below(lengthFigure), true
	case longer:
		return above(lengthFigure), true
	case confidenceDown:
		return below(confidenceFigure), f.has(hasConfidence)
	case confidenceUp:
		return above(confidenceFigure), f.has(hasConfidence)
	case wording:
		return below(wordingFigure), f.has(hasText)
	case benefitDown:
		return below(benefitFigure), f.has(hasBenefit)
	}
	// A refusal applies the values of what it refuses: an agent that refuses more does not give them up.
	return d.values>>(m-fixedMeasures)&1 == 1, f.has(hasCard) && !f.has(denies)
}

// beyond returns how far the figure of a measure is beyond the cut that it is compared with, in figures
// between the two; 0 for a measure without a figure.
func (d *decision) beyond(m measure, cuts *[figures]cut) figure {
	below := func(i int) figure { return cuts[i].low - d.figures[i] }
	above := func(i int) figure { return d.figures[i] - cuts[i].high }
	switch m {
	case costDown:
		return below(costFigure)
	case costUp:
		return above(costFigure)
	case shorter:
		return below(lengthFigure)
	case longer:
		return above(lengthFigure)
	case confidenceDown:
		return below(confidenceFigure)
	case confidenceUp:
		return above(confidenceFigure)
	case wording:
		return below(wordingFigure)
	case benefitDown:
		return below(benefitFigure)
	}
	return 0
}

// textSum is the direction of the sum of the sketches of a baseline's texts: the sum, scaled to 8
// bits.
type textSum struct {
	sum    [len(similarity.Sketch{})]int8
	length float32 // of sum; 0 without texts
}

// newTextSum adds sums of the same length.
func newTextSum(sums ...[]int16) (t textSum) {
	var total [len(t.sum)]int64
	most := int64(0)
	for i := range total {
		for _, sum := range sums {
			total[i] += int64(sum[i])
		}
		most = max(most, total[i], -total[i])
	}
	if most == 0 {
		return t
	}
	var squares int64
	for i, n := range total {
		t.sum[i] = int8(n * math.MaxInt8 / most)
		squares += int64(t.sum[i]) * int64(t.sum[i])
	}
	t.length = float32(math.Sqrt(float64(squares)))
	return t
}

// similarity returns the cosine of a text and the sum; known is false without one of them.
func (t *textSum) similarity(sketch *similarity.Sketch) (cosine float64, known bool) {
	length := math.Sqrt(float64(sketch.Dot(sketch)))
	if t.length == 0 || length == 0 {
		return 0, false
	}
	var product int64
	for i, n := range sketch {
		product += int64(n) * int64(t.sum[i])
	}
	return float64(product) / float64(length*float64(t.length)), true
}
