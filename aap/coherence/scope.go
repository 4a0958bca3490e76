package coherence

import (
	"maps"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/schema"
)

// scopes returns the actions that the proposal gives to each side.
func (m *matter) scopes() [2][]string {
	scope := m.task.Proposal.AutonomyScope
	if scope == nil {
		return [2][]string{}
	}
	return [2][]string{distinct(scope.InitiatorActions), distinct(scope.ResponderActions)}
}

// findBanned finds the proposed actions that an agent's own card forbids.
func (m *matter) findBanned() {
	for i, actions := range m.scopes() {
		for _, name := range actions {
			if m.sides[i].envelope.Forbidden(name) {
				m.banned = append(m.banned, action{name, i})
			}
		}
	}
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
	for i, actions := range m.scopes() {
		conditions = append(conditions, m.autonomy(i, actions)...)
	}
	return conditions
}

// autonomy returns the conditions on the actions given to a side: those that it must not take
// by itself.
func (m *matter) autonomy(i int, actions []string) []string {
	var conditions []string
	who := "the " + string(sideNames[i])
	if len(actions) > 0 && m.sides[i].party.Card.Principal.Relationship == schema.RelationshipAdvisory {
		conditions = append(conditions, who+" only recommends: its principal decides on its actions")
	}
	for _, name := range actions {
		if !m.sides[i].envelope.Bounded(name) {
			conditions = append(conditions, who+" escalates before "+quote(name)+", which its card does not bound")
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
	alternative.AutonomyScope = m.actionsWithout(aside)
	alternative.DataSharing = m.dataWithout(aside)
	alternative.Description = m.describe(open)
	return alternative
}

// actionsWithout returns the scope without banned actions and without actions named after a
// value that is given up; nil where nothing changes.
func (m *matter) actionsWithout(aside [2]map[string]bool) *schema.AutonomyScope {
	scope := m.task.Proposal.AutonomyScope
	if scope == nil {
		return nil
	}
	keep := func(side int) func(string) bool {
		return func(name string) bool {
			return !aside[side][name] && !slices.Contains(m.banned, action{name, side})
		}
	}
	left := &schema.AutonomyScope{
		InitiatorActions: selected(scope.InitiatorActions, keep(0)),
		ResponderActions: selected(scope.ResponderActions, keep(1)),
	}
	if len(left.InitiatorActions) == len(scope.InitiatorActions) && len(left.ResponderActions) == len(scope.ResponderActions) {
		return nil
	}
	return left
}

// dataWithout does the same as actionsWithout for the categories of data.
func (m *matter) dataWithout(aside [2]map[string]bool) *schema.DataSharing {
	sharing := m.task.Proposal.DataSharing
	if sharing == nil {
		return nil
	}
	keep := func(side int) func(string) bool {
		return func(category string) bool { return !aside[side][category] }
	}
	left := &schema.DataSharing{
		FromInitiator: selected(sharing.FromInitiator, keep(0)),
		FromResponder: selected(sharing.FromResponder, keep(1)),
	}
	if len(left.FromInitiator) == len(sharing.FromInitiator) && len(left.FromResponder) == len(sharing.FromResponder) {
		return nil
	}
	return left
}

// describe returns a sentence about what the modified scope leaves out.
func (m *matter) describe(open []dispute) string {
	const most = 5
	var without []string
	for _, d := range open {
		without = append(without, quote(d.value)+" of the "+string(sideNames[d.holder]))
	}
	for _, a := range m.banned {
		without = append(without, "the action "+quote(a.name)+" of the "+string(sideNames[a.side]))
	}
	listed := min(len(without), most)
	return "Proceed without " + strings.Join(without[:listed], ", ") + among(len(without)-listed+1)
}
