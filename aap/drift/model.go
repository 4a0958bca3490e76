package drift

import (
	"math"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

// Bounds on a baseline of sessions, so that no publisher can make it large. Further keys are not
// part of the centroid, and actions without a place have no rates of their own: they are not
// observed. Where an action's name found no place, new tools cannot be told and are not measured. An
// action that the baseline has often, and that found no place among those whose values are expected by
// action, applies values as its type.
const (
	maxKeys    = 48
	maxActions = 32
	maxApplied = 12
)

// expectations are what a baseline of sessions leads to expect of later traces. They never change.
type expectations struct {
	ID     schema.Digest // of the baseline
	Mode   Mode          // how it was formed
	Traces int
	source schema.Digest // of the sessions and their traces

	centroid centroid
	usual    float32  // mean similarity of the baseline's traces to the centroid
	lows     [10]rate // the share of them below 0.1, 0.2, … 1.0, at least seldom; see lowRate
	full     bool     // some keys found no place in the centroid

	rates   [fixedMeasures][kinds]bounds // of every measure whose rate does not depend on the action
	actions []actionRates
	values  []valueRates
	applied []appliedRates // of the actions that the baseline has often
	cuts    [kinds][figures]cut
	texts   [kinds]textSum
	alike   figure          // concentration of the sessions' own rates of escalations
	shares  [measures]share // what the baseline showed, for the sentences

	declaresBenefit bool // the card declares principal_benefit
	scoresBenefit   bool // a trace of the baseline scores it
}

// actionRates are the rates of an action, by type and name.
type actionRates struct {
	action      uint32 // hash of type and name
	escalations bounds
	failures    bounds
}

// valueRates are the rates at which a declared value is applied, by the action's type.
type valueRates struct {
	key  string // of the feature
	rate [actionTypes]bounds
}

// appliedRates are the rates at which an action applies each of the declared values. What an agent applies
// follows from what it does: the rate of a type changes with the tasks, because its actions do.
type appliedRates struct {
	action uint32 // hash of type and name
	rate   [maxValues]fallRate
}

// fallRate is what bounds are for an event that is tested for falling alone.
type fallRate struct{ mean, low rate }

// share is a number of events among decisions.
type share struct{ events, of uint16 }

func (s share) value() float64 { return float64(s.events) / float64(max(1, s.of)) }

// centroid is the mean of the features of a baseline's traces, by the hashes of their keys.
type centroid struct {
	keys    []uint64 // ascending
	weights []float32
	length  float64
}

func newCentroid(features similarity.Vector) centroid {
	sorted := slices.Clone(features)
	slices.SortFunc(sorted, func(a, b similarity.Feature) int {
		if hashOf(a.Key) < hashOf(b.Key) {
			return -1
		}
		return 1
	})
	c := centroid{keys: make([]uint64, len(sorted)), weights: make([]float32, len(sorted))}
	var squares float64
	for i, f := range sorted {
		c.keys[i], c.weights[i] = hashOf(f.Key), float32(f.Weight)
		squares += float64(float64(c.weights[i]) * float64(c.weights[i]))
	}
	c.length = math.Sqrt(squares)
	return c
}

func (c *centroid) weight(hash uint64) (float64, bool) {
	i, found := slices.BinarySearch(c.keys, hash)
	if !found {
		return 0, false
	}
	return float64(c.weights[i]), true
}

// similarity returns the cosine of v and the centroid, 0 when one of them has length zero.
func (c *centroid) similarity(v similarity.Vector) float64 {
	var product, squares float64
	for _, f := range v {
		weight, _ := c.weight(hashOf(f.Key))
		product += float64(f.Weight * weight)
		squares += float64(f.Weight * f.Weight)
	}
	if squares == 0 || c.length == 0 {
		return 0
	}
	return product / float64(math.Sqrt(squares)*c.length)
}

// hashOf is FNV-1a, 64 bits.
func hashOf(text string) uint64 {
	hash := uint64(14695981039346656037)
	for i := range len(text) {
		hash = (hash ^ uint64(text[i])) * 1099511628211
	}
	return hash
}

// actionHash identifies an action by its type and name.
func actionHash(typ, name string) uint32 {
	hash := hashOf(typ + ":" + name)
	return uint32(hash ^ hash>>32)
}

// observation is what one decision shows of one measure.
type observation struct {
	measure measure
	event   bool
	bounds  bounds  // what the baseline leads to expect of this decision
	kappa   float64 // concentration of the sessions' own rates
	beyond  figure  // how far the figure that makes the event is beyond the baseline's tenth; 0 of other events
}

// observe appends what x shows, in the order of the measures. A decision shows nothing of a measure
// if it lacks what is measured, or if the baseline has no such decision to compare with.
func (e *expectations) observe(x *Sample, into []observation) []observation {
	d := decisionOf(x)
	d.new = e.unfamiliar(x)
	d.values = e.valuesOf(x.Declared)
	kind := d.facts.kind()
	if e.rates[wording][kind].known() { // a sketch costs as much as the rest of the step
		sketch := similarity.SketchOf(x.Reasoning)
		if cosine, known := e.texts[kind].similarity(&sketch); known {
			d.facts |= hasText
			d.figures[wordingFigure] = figureOf(cosine)
		}
	}
	action, applied := e.ratesOf(x), e.appliedBy(x)
	for m := range fixedMeasures + measure(len(e.values)) {
		event, known := d.observe(m, &e.cuts[kind])
		if !known {
			continue
		}
		var b bounds
		switch {
		case m >= fixedMeasures && applied != nil:
			b = bounds{mean: applied.rate[m-fixedMeasures].mean, low: applied.rate[m-fixedMeasures].low}
		case m >= fixedMeasures:
			b = e.values[m-fixedMeasures].rate[d.typ]
		case m == escalations:
			b = action.escalations
		case m == failures:
			b = action.failures
		default:
			b = e.rates[m][kind]
		}
		if b.known() {
			o := observation{measure: m, event: event, bounds: b, kappa: m.kappa()}
			if m == escalationRate {
				o.kappa = e.alike.value()
			}
			if event {
				o.beyond = d.beyond(m, &e.cuts[kind])
			}
			into = append(into, o)
		}
	}
	return into
}

// seldom is a rate below which an event, or low similarity, is rare.
const seldom = .05

// lowRate returns how often a trace of the baseline is less similar to it than the threshold; seldom or more.
func (e *expectations) lowRate(threshold float64) float64 {
	i := 0
	for i < len(e.lows)-1 && threshold > float64(i+1)/float64(len(e.lows)) {
		i++
	}
	return e.lows[i].value()
}

// sustained returns how many low traces in a row are an alarm: as many as the parameters say, and of an
// agent of which more are low as many as are as unlikely.
func (e *expectations) sustained(p Params) (n int) {
	share, usual := e.lowRate(p.SimilarityThreshold), rateOf(seldom).value()
	chance := 1. // of so many in a row, relative to an agent of which few are low
	for range p.Sustained {
		chance *= float64(share / usual)
	}
	for n = p.Sustained; chance > 1 && n < MaxSustained; n++ {
		chance *= share
	}
	return n
}

// unfamiliar reports whether no trace of the baseline has an action of this name.
func (e *expectations) unfamiliar(x *Sample) bool {
	if e.full || x.Name == "" {
		return false
	}
	for i := range x.Features {
		if strings.HasPrefix(x.Features[i].Key, namePrefix) {
			_, found := e.centroid.weight(hashOf(x.Features[i].Key))
			return !found
		}
	}
	return false
}

func (e *expectations) valuesOf(declared []string) (bits uint8) {
	for _, key := range declared {
		for i := range e.values {
			if e.values[i].key == key {
				bits |= 1 << i
			}
		}
	}
	return bits
}

// active are the types of decisions that do something or would: all of AAP section 5.4 but deny.
var active = [...]schema.ActionType{schema.ActionRecommend, schema.ActionExecute, schema.ActionEscalate}

// ratesOf returns the rates of the decision's action; they are unknown for an action that the baseline
// does not have. One that it has under other types alone is expected to do as under those: an agent
// that only asks, with type escalate, would otherwise not be compared with what it did before.
func (e *expectations) ratesOf(x *Sample) (rates actionRates) {
	if i := e.action(x.Action, x.Name); i >= 0 {
		return e.actions[i]
	}
	if x.Name == "" || x.Denies() {
		return rates
	}
	for _, typ := range active {
		if i := e.action(string(typ), x.Name); i >= 0 {
			rates.escalations = rates.escalations.or(e.actions[i].escalations)
			rates.failures = rates.failures.or(e.actions[i].failures)
		}
	}
	return rates
}

// appliedBy returns the rates at which the decision's action applies values, or nil for an action that the
// baseline has seldom: it is expected to do as its type.
func (e *expectations) appliedBy(x *Sample) *appliedRates {
	if len(e.applied) == 0 {
		return nil
	}
	hash := actionHash(x.Action, x.Name)
	for i := range e.applied {
		if e.applied[i].action == hash {
			return &e.applied[i]
		}
	}
	return nil
}

// application returns which measured values the decision applies. A baseline of a version before 5, or one of
// actions that are all rare, does not say what an action applies: then each of them counts as usual.
func (e *expectations) application(x *Sample) application {
	return application{e.valuesOf(x.Declared), len(e.applied) == 0 || e.appliedBy(x) != nil}
}

func (e *expectations) action(typ, name string) int {
	hash := actionHash(typ, name)
	return slices.IndexFunc(e.actions, func(a actionRates) bool { return a.action == hash })
}
