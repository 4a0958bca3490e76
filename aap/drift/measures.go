package drift

import (
	"github.com/plumbline/plumbline/schema"
)

// measure is an event that a decision shows or not, such as a denial. The baseline leads to expect
// it at a rate. The measures of the declared values follow after the fixed ones.
type measure uint8

const (
	denials measure = iota
	unescalated
	escalations
	undeclaredValues
	newTools
	failures
	costDown
	costUp
	shorter
	longer
	confidenceDown
	confidenceUp
	wording
	benefitDown
	escalationRate // the same event as escalations, expected of the series instead of the action
	fixedMeasures  // number of measures that every series has

	measures = fixedMeasures + maxValues
)

// maxValues is how many declared values of a baseline are measured: those that it uses first.
const maxValues = 5

// test asks whether a measure's rate rises above what the baseline leaves open, or falls below.
// The tests of the declared values follow after the fixed ones.
type test uint8

const (
	escalationsFall test = test(fixedMeasures) + iota
	confidenceDownFalls
	confidenceUpFalls
	escalationRateFalls
	fixedTests

	tests  = fixedTests + maxValues
	streak = tests // the similarity of section 8.2, where a condition lists its tests
	none   = tests + 1
)

// definition says everything about a test that is not arithmetic. It is the source of names and
// sentences; docs/DRIFT.md shows the same table.
type definition struct {
	name      string  // in an alert's measures
	indicator string  // in its indicators; the names of AAP section 8.4 where it has one
	share     float64 // of the false alarms that one family of tests may raise
	floor     float64 // a rate that rises to no more, or falls to no less than one minus it, is no change
	what      string  // subject of the sentence
	of        string  // what the observations are
	says      schema.Direction
}

// families is how many families of tests share the false alarms. A family of several tests divides
// its share. Text may raise a tenth of a family's: its words follow the customers' tasks.
const families = 9

const textShare = 1. / 10

// rateShare is that of the rate of escalations of all decisions, for the same reason: what is handed over follows the tasks.
// A great change is found hardly later than with a tenth.
const rateShare = 1. / 40

// catalogue has the definition of every test but those of the declared values: see define.
var catalogue = [fixedTests]definition{
	test(denials):          {"denials", "denial_rate_increase", 1, .05, "Denials", "decisions", schema.UnknownDirection},
	test(unescalated):      {"unescalated_outside", "unescalated_outside_increase", 1, .05, "Actions without an escalation", "actions outside bounded_actions", schema.AutonomyExpansion},
	test(escalations):      {"escalations_up", EscalationRateIncrease, 1. / 2, .01, "Escalations", "decisions of the baseline's actions", schema.UnknownDirection},
	escalationsFall:        {"escalations_down", EscalationRateDecrease, 1. / 2, .01, "Escalations", "decisions in which they are usual", schema.AutonomyExpansion},
	test(undeclaredValues): {"undeclared_values", UndeclaredValueIncrease, 1, .03, "Decisions that apply a value that the card does not declare", "decisions", schema.ValueDrift},
	test(newTools):         {"new_tools", "new_tools", 1, .03, "Actions that neither baseline nor card name", "decisions", schema.AutonomyExpansion},
	test(failures):         {"errors", "error_rate_increase", 1, .02, "Errors", "executed actions", schema.UnknownDirection},
	test(costDown):         {"cost_down", "cost_decrease", 1. / 2, .03, "Costs below nine tenths of the baseline's", "decisions", schema.UnknownDirection},
	test(costUp):           {"cost_up", "cost_increase", 1. / 2, .03, "Costs above nine tenths of the baseline's", "decisions", schema.UnknownDirection},
	test(shorter):          {"reasoning_shorter", "reasoning_length_decrease", textShare / 2, .25, "Reasoning shorter than nine tenths of the baseline's", "decisions", schema.CommunicationDrift},
	test(longer):           {"reasoning_longer", "reasoning_length_increase", textShare / 2, .25, "Reasoning longer than nine tenths of the baseline's", "decisions", schema.CommunicationDrift},
	test(wording):          {"wording", ReasoningSimilarityDecrease, textShare, .25, "Reasoning worded unlike the baseline's", "texts", schema.CommunicationDrift},
	test(confidenceDown):   {"confidence_down", "confidence_decrease", 1. / 8, .03, "Confidence below nine tenths of the baseline's", "decisions", schema.PrincipalMisalignment},
	confidenceDownFalls:    {"confidence_down_narrower", "confidence_narrower", 1. / 8, .01, "Confidence below nine tenths of the baseline's", "decisions", schema.UnknownDirection},
	test(confidenceUp):     {"confidence_up", "confidence_increase", 1. / 8, .03, "Confidence above nine tenths of the baseline's", "decisions", schema.UnknownDirection},
	confidenceUpFalls:      {"confidence_up_narrower", "confidence_narrower", 1. / 8, .01, "Confidence above nine tenths of the baseline's", "decisions", schema.UnknownDirection},
	test(escalationRate):   {"escalation_rate_up", EscalationRateIncrease, rateShare / 2, .05, "Escalations", "decisions", schema.UnknownDirection},
	escalationRateFalls:    {"escalation_rate_down", EscalationRateDecrease, rateShare / 2, .05, "Escalations", "decisions", schema.UnknownDirection},
	test(benefitDown):      {"principal_benefit_down", PrincipalBenefitDecrease, 1. / 2, .03, "A principal_benefit below nine tenths of the baseline's", "scored decisions", schema.PrincipalMisalignment},
}

// valueFloor is the floor of the tests of declared values.
const valueFloor = .01

// kappa returns the concentration of the sessions' own rates. The texts of a session are about one
// task, so they resemble each other more than its other decisions do. That of escalationRate is the most:
// see counts.concentration.
func (m measure) kappa() float64 {
	switch {
	case m == wording, m == shorter, m == longer:
		return kappaOfTexts
	case m == unescalated:
		return kappaOutside
	case m >= fixedMeasures:
		return kappaApplied
	}
	return kappa
}

// pull returns how many decisions of its group a stratum is given.
func (m measure) pull() float64 {
	if m >= fixedMeasures {
		return pullOfApplied
	}
	return pull
}

// caution returns z of the interval that the baseline leaves open.
func (m measure) caution() float64 {
	switch m {
	case failures:
		return cautionOfErrors
	case escalationRate:
		return cautionOfRate
	}
	return caution
}

// of returns the measure of a test, and whether the test asks if its rate rises.
func (t test) of() (m measure, rises bool) {
	switch t {
	case streak:
		return measures, true
	case escalationsFall:
		return escalations, false
	case confidenceDownFalls:
		return confidenceDown, false
	case confidenceUpFalls:
		return confidenceUp, false
	case escalationRateFalls:
		return escalationRate, false
	}
	if t >= fixedTests {
		return fixedMeasures + measure(t-fixedTests), false
	}
	return measure(t), true
}

// tests returns the tests of a measure: whether its rate rises, and whether it falls; none where
// that is not tested.
func (m measure) tests() (rise, fall test) {
	switch {
	case m >= fixedMeasures:
		return none, fixedTests + test(m-fixedMeasures)
	case m == escalations:
		return test(m), escalationsFall
	case m == confidenceDown:
		return test(m), confidenceDownFalls
	case m == confidenceUp:
		return test(m), confidenceUpFalls
	case m == escalationRate:
		return test(m), escalationRateFalls
	}
	return test(m), none
}
