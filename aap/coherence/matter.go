package coherence

import (
	"github.com/plumbline/plumbline/schema"
)

// maxListed is how many conflicts a result lists, and how many steps of each kind. Unlisted
// ones count as well.
const maxListed = 100

// matter is a task with everything that two sides must resolve before they can work on it
// together.
type matter struct {
	sides    [2]*side // initiator, responder
	task     Task
	required []string
	from     schema.RequiredFrom
	firm     map[string]bool    // values that the agents cannot negotiate
	aside    [2]map[string]bool // values that each side gives up, as agreed
	disputes []dispute
	banned   []action // actions of the scope that their agent's card forbids
	steps    []schema.ResolutionStep
	governed []string // results of the automatic resolutions
}

// dispute is a value that one side declares and the other refuses.
type dispute struct {
	value    string
	holder   int    // index of the side that declares it
	kin      string // value of the refusing card that subsumes it or that it subsumes; empty where there is none
	resolved schema.ResolutionKind
}

// action is an action that the proposal gives to a side.
type action struct {
	name string
	side int
}

// sideNames are the names of the sides, by index.
var sideNames = [2]schema.Side{schema.Initiator, schema.Responder}

func newMatter(initiator, responder *side, task Task) *matter {
	m := &matter{sides: [2]*side{initiator, responder}, task: task, firm: setOf(schema.StandardValues), aside: [2]map[string]bool{{}, {}}}
	for _, value := range task.Required {
		m.firm[value] = true
	}
	if initiator.inForce() && responder.inForce() {
		m.findDisputes()
		m.findBanned()
		m.layAside()
	}
	m.required, m.from = requiredValues(&task, initiator, responder)
	return m
}

// layAside applies the concessions of the proposal that agents can make: those of values in
// conflict.
func (m *matter) layAside() {
	if m.task.Proposal.ModifiedValues == nil {
		return
	}
	conceded := concessions(m.task.Proposal.ModifiedValues)
	for _, d := range m.disputes {
		if !m.firm[d.value] && conceded[d.holder][d.value] {
			m.aside[d.holder][d.value] = true
		}
	}
}

func concessions(v *schema.ModifiedValues) [2]map[string]bool {
	return [2]map[string]bool{setOf(v.InitiatorConcession), setOf(v.ResponderConcession)}
}

// findDisputes finds the conflicts, those about the initiator's values first.
func (m *matter) findDisputes() {
	for i, holder := range m.sides {
		for _, value := range holder.declared {
			if m.sides[1-i].refuses[value] {
				m.disputes = append(m.disputes, dispute{value: value, holder: i})
			}
		}
	}
}

// matched returns the required values that both sides declare and contribute, and the other
// required values. A value that a side gives up is still required. Otherwise a side could reach
// any score by giving up all values that are not shared.
func (m *matter) matched() (matched, unmatched []string) {
	matched, unmatched = []string{}, []string{}
	for _, value := range m.required {
		if m.shared(value) && !m.aside[0][value] && !m.aside[1][value] {
			matched = append(matched, value)
		} else {
			unmatched = append(unmatched, value)
		}
	}
	return matched, unmatched
}

// shared reports whether both sides declare a value.
func (m *matter) shared(value string) bool { return m.sides[0].holds(value) && m.sides[1].holds(value) }

// open returns the unresolved disputes.
func (m *matter) open() []dispute {
	var open []dispute
	for _, d := range m.disputes {
		if d.resolved == "" {
			open = append(open, d)
		}
	}
	return open
}

// score returns the current score.
func (m *matter) score() float64 {
	matched, unmatched := m.matched()
	return score(len(matched), len(matched)+len(unmatched), len(m.open()))
}

// scoreWithout returns the score if every one of the disputes is resolved by giving its value
// up.
func (m *matter) scoreWithout(disputes []dispute) float64 {
	matched, _ := m.matched()
	gone := map[string]bool{}
	for _, d := range disputes {
		gone[d.value] = true
	}
	left := selected(matched, func(value string) bool { return !gone[value] })
	return score(len(left), len(m.required), 0)
}

// conflicts returns the disputes as a result lists them.
func (m *matter) conflicts() []schema.ValueConflict {
	list := []schema.ValueConflict{}
	for _, d := range m.disputes[:min(len(m.disputes), maxListed)] {
		against, why := m.against(d)
		pair := [2]string{against, against}
		pair[d.holder] = d.value
		list = append(list, schema.ValueConflict{
			InitiatorValue: pair[0], ResponderValue: pair[1], ConflictType: schema.ConflictIncompatible,
			Description: "the " + string(sideNames[1-d.holder]) + " refuses to coordinate with " + quote(d.value) +
				", which the " + string(sideNames[d.holder]) + " declares" + why,
			RefusedBy: sideNames[1-d.holder], ResolvedBy: d.resolved,
		})
	}
	return list
}

// against returns the value of the refusing card that opposes a dispute's value, and explains
// the choice: a card lists the values it refuses but not because of which own value.
func (m *matter) against(d dispute) (value, why string) {
	refuser, holder := m.sides[1-d.holder], m.sides[d.holder]
	name := string(sideNames[1-d.holder])
	switch {
	case refuser.holds(d.value):
		return d.value, ", and declares it, too"
	case d.kin != "":
		return d.kin, "; the " + name + " relates it to its own " + quote(d.kin)
	}
	own := selected(refuser.declared, func(v string) bool { return !holder.holds(v) })
	if len(own) > 0 {
		value = refuser.foremost(own)
		return value, "; " + quote(value) + " is the foremost value that the " + name + " alone declares"
	}
	if len(refuser.declared) > 0 {
		value = refuser.foremost(refuser.declared)
		return value, "; " + quote(value) + " is the foremost value of the " + name
	}
	return schema.ConflictsWith, ""
}
