package coherence

import (
	"slices"
	"strconv"

	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

// resolve takes the steps of AAP section 6.5 in their order, each for the conflicts that the
// previous step left. It returns the proposed resolution, nil where nothing prevents
// proceeding. minimum is the score that a modified scope must reach.
func (m *matter) resolve(minimum float64) *schema.ProposedResolution {
	m.subsume()
	for i := range m.disputes { // step 2 for those that the proposal already resolves
		d := &m.disputes[i]
		if d.resolved == "" && m.aside[d.holder][d.value] {
			d.resolved = schema.ResolutionScope
			m.step(schema.ResolutionScope, d.value, sideNames[d.holder], schema.StepResolved, "the proposal lays it aside for this task")
		}
	}
	open := m.open()
	if len(open)+len(m.banned) == 0 {
		return nil
	}
	matched, _ := m.matched()
	gone := map[string]bool{}
	for _, d := range open {
		gone[d.value] = true
	}
	kept := selected(matched, func(value string) bool { return !gone[value] })
	left := score(len(kept), len(m.required), 0) // where every open dispute is resolved by giving its value up
	enough := len(m.required) > 0 && left >= minimum
	beyond := m.negotiate(open, enough)
	p := &schema.ProposedResolution{Type: schema.ResolutionScope, Reason: "the agents can agree on a modified scope",
		Alternative: m.modifiedScope(open)}
	switch {
	case !enough:
		p.Reason = "no modified scope is enough for the agents: without what is in conflict the score would be " +
			strconv.FormatFloat(similarity.Round4(left), 'f', -1, 64)
		p.Alternative.Description += ", if the principals accept that score"
	case len(beyond) > 0:
		p.Reason = "the agents cannot give up " + quote(beyond[0].Subject) + among(len(beyond)) + ": it takes a human decision"
	default:
		return p
	}
	p.Type = schema.ResolutionEscalate
	for i, s := range m.sides {
		card := s.party.Card
		p.Contacts = append(p.Contacts, schema.Contact{
			Side: sideNames[i], AgentID: card.AgentID, Contact: card.Principal.EscalationContact,
		})
	}
	for _, failed := range beyond {
		m.step(schema.ResolutionEscalate, failed.Subject, failed.Side, schema.StepRequired, "the agents cannot resolve it between them")
	}
	return p
}

// subsume is step 1, automatic resolution.
func (m *matter) subsume() {
	for i := range m.disputes {
		d := &m.disputes[i]
		kin, resolved, why := automatic(d.value, m.sides[1-d.holder], m.sides[d.holder])
		d.kin = kin
		if !resolved {
			m.step(schema.ResolutionAutomatic, d.value, sideNames[d.holder], schema.StepFailed, why)
			continue
		}
		d.resolved = schema.ResolutionAutomatic
		m.governed = append(m.governed, why)
		m.step(schema.ResolutionAutomatic, d.value, sideNames[d.holder], schema.StepResolved, why)
	}
}

// negotiate is step 2 for the unresolved disputes. It returns the steps that failed.
func (m *matter) negotiate(open []dispute, enough bool) (beyond []schema.ResolutionStep) {
	try := func(subject string, side int, possible bool, why string) {
		if !enough {
			possible, why = false, "without what is in conflict the score is too low"
		}
		if possible {
			m.step(schema.ResolutionScope, subject, sideNames[side], schema.StepProposed, why)
			return
		}
		m.step(schema.ResolutionScope, subject, sideNames[side], schema.StepFailed, why)
		beyond = append(beyond, schema.ResolutionStep{Subject: subject, Side: sideNames[side]})
	}
	for _, d := range open {
		switch {
		case !m.firm[d.value]:
			try(d.value, d.holder, true, "the task does not require it, so it can be laid aside")
		case slices.Contains(m.task.Required, d.value):
			try(d.value, d.holder, false, "the task requires it")
		default:
			try(d.value, d.holder, false, "it is a standard value, which no agent gives up by itself")
		}
	}
	for _, a := range m.banned {
		try(a.name, a.side, true, "the task can go without the action, which the agent's card forbids")
	}
	return beyond
}

// step records a step, at most maxListed of each kind.
func (m *matter) step(kind schema.ResolutionKind, subject string, of schema.Side, outcome schema.StepOutcome, why string) {
	alike := 0
	for i := range m.steps {
		if m.steps[i].Step == kind {
			alike++
		}
	}
	if alike < maxListed {
		m.steps = append(m.steps, schema.ResolutionStep{Step: kind, Subject: subject, Side: of, Outcome: outcome, Reason: why})
	}
}

// among returns how many more there are if one of n is named.
func among(n int) string {
	if n == 1 {
		return ""
	}
	return " and " + strconv.Itoa(n-1) + " more"
}
