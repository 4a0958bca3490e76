package demo

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/schema"
)

// comparison collects every difference as text.
type comparison struct{ faults []string }

func (c *comparison) addf(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

// lost compares what was published with what is there. The comparison applies to a simulated
// fleet and to a recording.
func (c *comparison) lost(p *published, f *found) {
	c.faults = append(c.faults, p.wrong...)
	var lost []string
	for digest, id := range p.traces {
		if !f.stored[digest] {
			lost = append(lost, id)
		}
	}
	slices.Sort(lost)
	c.ids("accepted, but not stored", lost)
	if f.strange > 0 {
		c.addf("%d traces are stored that nobody published", f.strange)
	}
	if f.unjudged > 0 {
		c.addf("%d traces have no verdict, or their card is unknown", f.unjudged)
	}
	sealed := p.sealedIDs(f.bundles)
	c.ids("stored, but in no bundle", without(slices.Sorted(maps.Keys(p.ids)), slices.Sorted(maps.Keys(sealed))))
	for digest, r := range p.refused {
		if got, ok := f.letters[digest]; !ok {
			c.addf("line %d was refused (%s), but is no dead letter", r.line+1, r.reason)
		} else if got != r.reason {
			c.addf("line %d was refused as %s, but is a dead letter as %s", r.line+1, r.reason, got)
		}
	}
}

// planted compares what was found with what was planted.
func (c *comparison) planted(truth *fleet.Planted, p *published, f *found) {
	c.types("", truth.Violations, f.violations)
	c.types("", truth.Findings, f.findings)
	c.types("session ", truth.SessionFindings, f.sessionFindings)
	for _, kind := range slices.Sorted(maps.Keys(f.sessionCounts)) {
		if n, listed := f.sessionCounts[kind], len(f.sessionFindings[kind]); n != listed {
			c.addf("session %s: %d counted, but only %d listed: the others cannot be compared", kind, n, listed)
		}
	}
	c.same("conflict", truth.Conflicts, f.conflicts)
	c.ids("published twice, but not answered as a duplicate",
		without(truth.Duplicates, slices.Sorted(maps.Keys(p.repeated))))
	missing, strange := truth.CompareDrift(f.alerts)
	var changes, alerts []string
	for i := range missing {
		changes = append(changes, missing[i].String())
	}
	for _, a := range strange {
		alerts = append(alerts, fmt.Sprintf("%s under %s: %s, %s, opened %s: %s", a.AgentID, a.CardID, a.Analysis.DriftDirection, a.State, a.OpenedAt, a.Summary))
	}
	c.ids("drift alert: planted, but not found", changes)
	c.ids("drift alert: found, but not planted", alerts)
	c.same("alert about a loop", truth.SessionFindings[schema.ActionLoop], f.loops)
	var planted, refused []string
	for _, r := range truth.Refused {
		planted = append(planted, fmt.Sprintf("line %d as %s", r.Line+1, r.Reason))
	}
	for _, r := range p.refused {
		refused = append(refused, fmt.Sprintf("line %d as %s", r.line+1, r.reason))
	}
	c.same("refusal", planted, refused)
	if p.lines != truth.Lines || len(f.stored) != truth.Stored {
		c.addf("%d lines were published and %d traces stored, but %d and %d were planned", p.lines, len(f.stored), truth.Lines, truth.Stored)
	}
}

// types compares trace ids by type; of is the kind of type in messages.
func (c *comparison) types(of string, planted, found map[string][]string) {
	all := maps.Clone(planted)
	maps.Copy(all, found)
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		c.same(of+kind, planted[kind], found[kind])
	}
}

// same compares two lists as multisets.
func (c *comparison) same(what string, planted, found []string) {
	planted, found = slices.Sorted(slices.Values(planted)), slices.Sorted(slices.Values(found))
	c.ids(what+": planted, but not found", without(planted, found))
	c.ids(what+": found, but not planted", without(found, planted))
}

// ids reports a list that should be empty.
func (c *comparison) ids(what string, ids []string) {
	const shown = 5
	switch n := len(ids); {
	case n > shown:
		c.addf("%s: %s and %d more", what, strings.Join(ids[:shown], ", "), n-shown)
	case n > 0:
		c.addf("%s: %s", what, strings.Join(ids, ", "))
	}
}

// without returns the items of the first sorted list that are not in the second.
func without(list, taken []string) (rest []string) {
	for _, item := range list {
		for len(taken) > 0 && taken[0] < item {
			taken = taken[1:]
		}
		if len(taken) > 0 && taken[0] == item {
			taken = taken[1:]
			continue
		}
		rest = append(rest, item)
	}
	return rest
}

// Types that a report lists even if their count is zero.
var (
	violationTypes = []string{schema.UnboundedAction, schema.ForbiddenAction, schema.MissedEscalation,
		schema.UndeclaredValue, schema.CardExpired, schema.CardMismatch}
	findingTypes = []string{schema.AgentMismatch, schema.BadSignature, schema.CardRevoked, schema.DeniedButActed,
		schema.ValueLimitExceeded, schema.ValueCurrencyMismatch, schema.ApprovalConditionBroken, schema.AdvisoryExecuted,
		schema.TriggerMisreported, schema.AmbiguousField, schema.Backdated, schema.CategoryEvasion, schema.CategoryMismatch,
		schema.CardSuperseded, schema.TimeImplausible}
	sessionFindingTypes = []string{schema.TraceGap, schema.TurnOrder, schema.EscalationUnanswered, schema.DeniedButActed,
		schema.ActedBeforeAnswer, schema.TimeImplausible, schema.ContradictoryAnswer, schema.ActionLoop}
)
