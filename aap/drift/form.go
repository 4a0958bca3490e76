package drift

import (
	"crypto/sha256"
	"math/bits"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

// NewBaseline forms a baseline, for use as a pin, of the samples in the given order, at least one.
// It belongs to the agent and card of the first sample. Whole sessions make the best baseline.
func NewBaseline(samples []Sample) Formed {
	sessions := map[string]bool{}
	for i := range samples {
		sessions[samples[i].Session] = true
	}
	l := &learning{first: (len(sessions) + 1) / 2}
	var traces []TraceRef
	for i := range samples {
		l.add(&samples[i])
		traces = append(traces, TraceRef{samples[i].TraceID, samples[i].Digest})
	}
	return l.form(samples[0].AgentID, samples[0].CardID, ModePinned, traces)
}

// form forms the baseline. traces lists its traces where they are known.
func (l *learning) form(agentID, cardID string, mode Mode, traces []TraceRef) Formed {
	f := former{learning: l, expectations: &expectations{Mode: mode, full: l.full, declaresBenefit: l.benefit != 0}}
	for i := range l.traces {
		f.chosen = append(f.chosen, &l.traces[i])
	}
	f.Traces = len(f.chosen)
	f.measureCuts()
	f.nameValues()
	f.decide()
	for m := range fixedMeasures + measure(len(f.values)) {
		f.measureRates(m)
	}
	for k := range l.texts {
		f.expectations.texts[k] = newTextSum(l.texts[k][0].sum[:], l.texts[k][1].sum[:])
	}
	b := &Baseline{Mode: mode, Content: f.content(), expected: f.expectations}
	f.describe(b.Features)
	formed := Formed{Baseline: b, Traces: traces}
	source := sha256.New() // strings and lists are preceded by their lengths
	for _, s := range l.sessions {
		formed.Sessions = append(formed.Sessions, s.id)
		writeString(source, s.id)
		writeUint(source, uint64(s.traces))
		source.Write(s.chain[:])
	}
	f.source = schema.Digest(source.Sum(nil))
	f.ID = formed.identity(agentID, cardID)
	b.ID = f.ID
	return formed
}

// former computes the expectations from the traces of a baseline.
type former struct {
	*learning
	*expectations
	chosen    []*reduced
	few       [kinds][figures]bool // too few decisions of the baseline have the figure
	decisions []decision           // the same traces, as the measures see them
}

func (f *former) shapeOf(r *reduced) *shape { return &f.shapes[r.shape] }

// Least samples of what a baseline expects. The texts of a session are about one task, so those of two
// sessions say little of the next one's.
const (
	leastFigures      = 10 // figures of a lowest and a highest tenth
	leastApplied      = 5  // decisions of an action that say which declared values it applies
	leastTextSessions = 4  // sessions of the texts that are compared with those of the first sessions
	leastRateSessions = 4  // sessions that say how often an agent escalates
)

// measureCuts finds the lowest and highest tenth of each figure, by kind of decision.
func (f *former) measureCuts() {
	needs := [figures]facts{costFigure: executed, confidenceFigure: hasConfidence, benefitFigure: hasBenefit, wordingFigure: hasText}
	for k := range f.cuts {
		for i := range f.cuts[k] {
			var found []figure
			var sessions uint64 // that have the figure, a bit each
			for _, r := range f.chosen {
				if s := f.shapeOf(r); s.facts.kind() == Kind(k) && s.facts.has(needs[i]) {
					found = append(found, r.figures[i])
					sessions |= 1 << r.session
				}
			}
			n := len(found)
			if n < leastFigures || i == wordingFigure && bits.OnesCount64(sessions) < leastTextSessions {
				f.few[k][i] = true
				continue
			}
			slices.Sort(found)
			f.cuts[k][i] = cut{found[n/10], found[min(n-1, n*9/10)]}
			if i == wordingFigure { // later texts were compared with fewer sessions: a tenth was too high
				f.cuts[k][i].low = found[n/20]
			}
		}
	}
}

// lacksCut reports whether a measure compares with a cut that there is none of.
func (f *former) lacksCut(m measure, k Kind) bool {
	i, cuts := map[measure]int{
		costDown: costFigure, costUp: costFigure, shorter: lengthFigure, longer: lengthFigure,
		confidenceDown: confidenceFigure, confidenceUp: confidenceFigure, wording: wordingFigure, benefitDown: benefitFigure,
	}[m]
	return cuts && f.few[k][i]
}

// nameValues chooses the declared values to measure: those that the baseline applied.
func (f *former) nameValues() {
	var applied uint64
	for _, r := range f.chosen {
		applied |= f.shapeOf(r).features
		f.scoresBenefit = f.scoresBenefit || f.shapeOf(r).facts.has(hasBenefit)
	}
	set := applied & f.declared
	f.values = make([]valueRates, min(maxValues, bits.OnesCount64(set)))
	for i := range f.values {
		f.values[i].key = f.keys[bits.TrailingZeros64(set)]
		set &= set - 1
	}
}

// decide makes the decisions that the measures observe.
func (f *former) decide() {
	loners, places := f.loners(), make([]int, len(f.values))
	for i := range f.values {
		places[i] = slices.Index(f.keys, f.values[i].key)
	}
	for _, r := range f.chosen {
		s := f.shapeOf(r)
		d := decision{facts: s.facts, typ: s.typ, figures: r.figures, new: s.features&loners != 0}
		for i, place := range places {
			d.values |= uint8(s.features>>place&1) << i
		}
		f.decisions = append(f.decisions, d)
	}
}

// loners returns the keys of the action names that only one session has. Their share estimates how
// many new names the next session will have.
func (f *former) loners() (set uint64) {
	var names, several uint64
	for i, key := range f.keys {
		if strings.HasPrefix(key, namePrefix) {
			names |= 1 << i
		}
	}
	first := map[uint64]uint8{} // session that had the name first
	for _, r := range f.chosen {
		name := f.shapeOf(r).features & names
		set |= name
		if session, known := first[name]; !known {
			first[name] = r.session
		} else if session != r.session {
			several |= name
		}
	}
	return set &^ several
}

// measureRates counts the event of a measure in the baseline, and sets the rates to expect.
func (f *former) measureRates(m measure) {
	if m == escalationRate && len(f.sessions) < leastRateSessions {
		return
	}
	strata, group, of := f.strataOf(m)
	counted := f.count(m, strata, group, of)
	raw := counted.raw()
	f.shares[m] = share{uint16(raw.events), uint16(raw.decisions)}
	if m == newTools {
		f.shares[m].events = 0 // the baseline names all of its actions
	}
	if m == escalationRate {
		f.alike = figureOf(counted.concentration())
		counted.kappa = f.alike.value()
	}
	all, each := counted.expect(beliefOf(m), floorOf(m), m.caution())
	switch {
	case m >= fixedMeasures:
		for i := range each { // an agent that applies a value by chance may have applied it in each of few
			if decisions := counted.decisions(i); decisions > 0 && decisions < leastFigures {
				each[i] = each[i].or(all)
			}
		}
		copy(f.values[m-fixedMeasures].rate[:], each)
		f.appliedRates(m)
	case m == escalations, m == failures:
		f.actionRates(m, each)
	case strata == int(kinds):
		copy(f.rates[m][:], each)
	case raw.decisions > 0 || m == unescalated:
		f.rates[m] = [kinds]bounds{all, all}
	}
}

// count counts the event of a measure in the baseline, by strata.
func (f *former) count(m measure, strata int, group []int, of func(s *shape) int) *counts {
	counted := newCounts(strata, len(f.sessions), m.kappa(), m.pull(), group)
	for i, r := range f.chosen {
		d := &f.decisions[i]
		if event, known := d.observe(m, &f.cuts[d.facts.kind()]); known && !f.lacksCut(m, d.facts.kind()) {
			if at := of(f.shapeOf(r)); at < strata {
				counted.add(at, int(r.session), event)
			}
		}
	}
	return counted
}

// appliedRates sets the rate at which each action that the baseline has often applies a declared value.
func (f *former) appliedRates(m measure) {
	strata, group, of := f.byAction()
	counted := f.count(m, strata, group, of)
	_, each := counted.expect(beliefOf(m), floorOf(m), m.caution())
	var often []int
	for i := range strata {
		if counted.decisions(i) >= leastApplied && len(often) < maxApplied {
			often = append(often, i)
		}
	}
	if f.applied == nil && len(often) > 0 { // all values have the same decisions
		f.applied = make([]appliedRates, len(often))
	}
	for at, i := range often {
		f.applied[at].action = f.learning.actions[i].hash
		f.applied[at].rate[m-fixedMeasures] = fallRate{each[i].mean, each[i].low}
	}
}

func (f *former) actionRates(m measure, each []bounds) {
	if f.expectations.actions == nil {
		f.expectations.actions = make([]actionRates, len(f.learning.actions))
		for i, a := range f.learning.actions {
			f.expectations.actions[i].action = a.hash
		}
	}
	for i := range f.expectations.actions {
		if m == escalations {
			f.expectations.actions[i].escalations = each[i]
		} else {
			f.expectations.actions[i].failures = each[i]
		}
	}
}

// strataOf returns by what a measure's rate is expected: by action, by the action's type, by the kind
// of the decision, or the same for all.
func (f *former) strataOf(m measure) (strata int, group []int, of func(s *shape) int) {
	switch {
	case m >= fixedMeasures:
		return actionTypes, nil, func(s *shape) int { return int(s.typ) }
	case m == escalations, m == failures:
		return f.byAction()
	case m >= costDown && m <= benefitDown:
		return int(kinds), nil, func(s *shape) int { return int(s.facts.kind()) }
	}
	return 1, nil, func(*shape) int { return 0 }
}

// byAction returns the strata of the baseline's actions, in groups by their types.
func (f *former) byAction() (strata int, group []int, of func(s *shape) int) {
	for _, a := range f.learning.actions {
		group = append(group, int(a.typ))
	}
	return len(group), group, func(s *shape) int { return int(s.action) }
}

func beliefOf(m measure) belief {
	switch {
	case m == unescalated:
		return rarely
	case m >= costDown && m <= benefitDown:
		return tenth
	}
	return ordinary
}

func floorOf(m measure) float64 {
	if m >= fixedMeasures {
		return valueFloor
	}
	return catalogue[m].floor
}

// content returns the centroid, and the figures of the table of baselines.
func (f *former) content() Content {
	var c Content
	weights := make([]float64, len(f.keys))
	for _, r := range f.chosen {
		s := f.shapeOf(r)
		for set := s.features; set != 0; set &= set - 1 {
			i := bits.TrailingZeros64(set)
			weights[i] += f.weight(i, r)
		}
		if s.facts.has(escalated) {
			c.Tally.Escalated++
		}
		c.Tally.Traces++
	}
	for i, key := range f.keys {
		if weights[i] != 0 {
			c.Features = append(c.Features, similarity.Feature{Key: key, Weight: weights[i]})
		}
	}
	c.Features = similarity.Compact(similarity.Centroid(c.Features, len(f.chosen)))
	for k := range f.learning.texts {
		c.Reasoning.Texts += f.learning.texts[k][0].count + f.learning.texts[k][1].count
	}
	return c
}

// describe sets the centroid that later traces are compared with, and how similar the traces of the
// baseline are to it themselves.
func (f *former) describe(features similarity.Vector) {
	f.centroid = newCentroid(features)
	var sum float64
	var below [len(f.lows)]*counts
	for i := range below {
		below[i] = newCounts(1, len(f.sessions), kappa, pull, nil)
	}
	for _, r := range f.chosen {
		score := f.centroid.similarity(f.vector(r))
		sum += score
		for i := range below {
			below[i].add(0, int(r.session), score < float64(i+1)/float64(len(below)))
		}
	}
	f.usual = float32(sum / float64(len(f.chosen)))
	for i := range below {
		all, _ := below[i].expect(belief{seldom, .5}, seldom, caution)
		f.lows[i] = max(all.mean, rateOf(seldom))
	}
}

func (f *former) vector(r *reduced) (v similarity.Vector) {
	for set := f.shapeOf(r).features; set != 0; set &= set - 1 {
		i := bits.TrailingZeros64(set)
		v = append(v, similarity.Feature{Key: f.keys[i], Weight: f.weight(i, r)})
	}
	return v
}

// weight returns the weight of a feature that a trace has.
func (f *former) weight(key int, r *reduced) float64 {
	if f.keys[key] == confidenceKey {
		return float64(r.confidence)
	}
	return 1
}
