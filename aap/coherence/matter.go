package coherence

import (
	"maps"
	"slices"
	"strings"

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
	disputes []dispute          // those about the initiator's values first
	banned   []action           // actions of the scope that their agent's card forbids
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
	// A task that names no value requires all values that either card declares. The
	// values_intersection of a check requires nothing: both cards declare those values, so the
	// score would always be 1.
	m.required, m.from = distinct(initiator.declared, responder.declared), schema.RequiredByCards
	if len(task.Required) > 0 {
		m.required, m.from = distinct(task.Required), schema.RequiredByTask
	}
	if !initiator.inForce() || !responder.inForce() {
		return m
	}
	for i, holder := range m.sides {
		for _, value := range holder.declared {
			if m.sides[1-i].refuses[value] {
				m.disputes = append(m.disputes, dispute{value: value, holder: i})
			}
		}
	}
	for i, actions := range m.scopes() {
		for _, name := range actions {
			if m.sides[i].envelope.Forbidden(name) {
				m.banned = append(m.banned, action{name, i})
			}
		}
	}
	if v := task.Proposal.ModifiedValues; v != nil { // agents can only concede values in conflict
		conceded := [2]map[string]bool{setOf(v.InitiatorConcession), setOf(v.ResponderConcession)}
		for _, d := range m.disputes {
			if !m.firm[d.value] && conceded[d.holder][d.value] {
				m.aside[d.holder][d.value] = true
			}
		}
	}
	return m
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

// scopes returns the actions that the proposal gives to each side.
func (m *matter) scopes() [2][]string {
	scope := m.task.Proposal.AutonomyScope
	if scope == nil {
		return [2][]string{}
	}
	return [2][]string{distinct(scope.InitiatorActions), distinct(scope.ResponderActions)}
}

// conditions returns the conditions of proceeding.
func (m *matter) conditions() []string {
	conditions := []string{}
	for i, values := range m.aside {
		for _, value := range selected(m.sides[i].declared, func(v string) bool { return values[v] }) {
			conditions = append(conditions, "the "+string(sideNames[i])+" lays "+quote(value)+" aside for this task")
		}
	}
	conditions = append(conditions, m.governed...)
	for i, actions := range m.scopes() { // those that the side must not take by itself
		who := "the " + string(sideNames[i])
		if len(actions) > 0 && m.sides[i].party.Card.Principal.Relationship == schema.RelationshipAdvisory {
			conditions = append(conditions, who+" only recommends: its principal decides on its actions")
		}
		for _, name := range actions {
			if !m.sides[i].envelope.Bounded(name) {
				conditions = append(conditions, who+" escalates before "+quote(name)+", which its card does not bound")
			}
		}
	}
	return conditions
}

// modifiedScope returns the rest of the proposal if every open dispute is resolved by giving
// its value up. Actions and data with the name of such a value are removed as well, and no
// agent is given an action that its card forbids. If it is proposed in another check, it
// resolves everything that agents can resolve.
func (m *matter) modifiedScope(open []dispute) *schema.ModifiedScope {
	aside := [2]map[string]bool{maps.Clone(m.aside[0]), maps.Clone(m.aside[1])}
	for _, d := range open {
		aside[d.holder][d.value] = true
	}
	given := [2][]string{}
	for i, s := range m.sides {
		given[i] = selected(s.declared, func(v string) bool { return aside[i][v] })
	}
	alternative := &schema.ModifiedScope{Type: schema.ResolutionScope}
	if len(given[0])+len(given[1]) > 0 {
		alternative.ModifiedValues = &schema.ModifiedValues{InitiatorConcession: given[0], ResponderConcession: given[1]}
	}
	if scope := m.task.Proposal.AutonomyScope; scope != nil {
		left, fewer := without(scope.InitiatorActions, scope.ResponderActions, func(side int, name string) bool {
			return aside[side][name] || slices.Contains(m.banned, action{name, side})
		})
		if fewer {
			alternative.AutonomyScope = &schema.AutonomyScope{InitiatorActions: left[0], ResponderActions: left[1]}
		}
	}
	if sharing := m.task.Proposal.DataSharing; sharing != nil {
		left, fewer := without(sharing.FromInitiator, sharing.FromResponder, func(side int, category string) bool { return aside[side][category] })
		if fewer {
			alternative.DataSharing = &schema.DataSharing{FromInitiator: left[0], FromResponder: left[1]}
		}
	}
	const most = 5
	var gone []string
	for _, d := range open {
		gone = append(gone, quote(d.value)+" of the "+string(sideNames[d.holder]))
	}
	for _, a := range m.banned {
		gone = append(gone, "the action "+quote(a.name)+" of the "+string(sideNames[a.side]))
	}
	listed := min(len(gone), most)
	alternative.Description = "Proceed without " + strings.Join(gone[:listed], ", ") + among(len(gone)-listed+1)
	return alternative
}

// without returns the names of both sides that are not left out, and reports whether any is.
func without(initiator, responder []string, leftOut func(side int, name string) bool) (left [2][]string, fewer bool) {
	for side, names := range [2][]string{initiator, responder} {
		left[side] = selected(names, func(name string) bool { return !leftOut(side, name) })
		fewer = fewer || len(left[side]) < len(names)
	}
	return left, fewer
}
