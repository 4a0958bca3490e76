package reference

import (
	"fmt"
	"slices"

	"github.com/plumbline/plumbline/aap/similarity"
)

const (
	conflictPenalty     = 0.5
	coherenceForProceed = 0.7
	conflictsWith       = "(conflicts_with)" // replaces the other card's list in a conflict
)

// Coherence is the SDK's result for two cards.
type Coherence struct {
	Compatible         bool           `json:"compatible"`
	Score              float64        `json:"score"`
	ValueAlignment     ValueAlignment `json:"value_alignment"`
	Proceed            bool           `json:"proceed"`
	Conditions         []string       `json:"conditions"` // always empty
	ProposedResolution *Resolution    `json:"proposed_resolution"`
}

// ValueAlignment lists the values of both cards.
type ValueAlignment struct {
	Matched   []string   `json:"matched"`
	Unmatched []string   `json:"unmatched"`
	Conflicts []Conflict `json:"conflicts"`
}

// Conflict is a value of one card that the other card conflicts with.
type Conflict struct {
	InitiatorValue string `json:"initiator_value"`
	ResponderValue string `json:"responder_value"`
	ConflictType   string `json:"conflict_type"`
	Description    string `json:"description"`
}

// Resolution is the SDK's proposal for a conflict.
type Resolution struct {
	Type   string `json:"type"`
	Reason string `json:"reason"`
}

// CheckCoherence compares the initiator's card with the responder's. taskValues are the values
// that the task requires; Undefined or null means all values of both cards.
func CheckCoherence(mine, theirs, taskValues any) (c Coherence, err error) {
	defer catch(&err)
	return coherence(partyOf(value{mine, "my_card"}), partyOf(value{theirs, "their_card"}), value{taskValues, "task_values"}), nil
}

// party is the part of a card that coherence uses.
type party struct {
	declared  []string // with duplicates, as in the card
	values    []string // without duplicates
	holds     map[string]bool
	conflicts map[string]bool
}

func partyOf(card value) party {
	values := card.get("values")
	p := party{declared: valueIDs(values.get("declared")), conflicts: map[string]bool{}}
	p.values, p.holds = unique(p.declared), setOf(p.declared)
	for _, conflict := range values.get("conflicts_with").eachOrNone() {
		if name, ok := conflict.v.(string); ok {
			p.conflicts[name] = true
		}
	}
	return p
}

func unique(names []string) []string {
	seen, once := map[string]bool{}, []string{}
	for _, name := range names {
		if !seen[name] {
			seen[name] = true
			once = append(once, name)
		}
	}
	return once
}

// within returns the names that are in set; outside returns those that are not. They never
// return nil.
func within(names []string, set map[string]bool) []string {
	return slices.DeleteFunc(append([]string{}, names...), func(name string) bool { return !set[name] })
}

func outside(names []string, set map[string]bool) []string {
	return slices.DeleteFunc(append([]string{}, names...), func(name string) bool { return set[name] })
}

func coherence(mine, theirs party, task value) Coherence {
	matched := within(mine.values, theirs.holds)
	unmatched := append(outside(mine.values, theirs.holds), outside(theirs.values, mine.holds)...)
	conflicts := []Conflict{} // those about the initiator's values first
	for _, name := range within(mine.values, theirs.conflicts) {
		conflicts = append(conflicts, Conflict{name, conflictsWith, "incompatible",
			fmt.Sprintf("Initiator's '%s' is in responder's conflicts_with", name)})
	}
	for _, name := range within(theirs.values, mine.conflicts) {
		conflicts = append(conflicts, Conflict{conflictsWith, name, "incompatible",
			fmt.Sprintf("Responder's '%s' is in initiator's conflicts_with", name)})
	}
	required, met := len(matched)+len(unmatched), len(matched)
	if task.truthy() {
		names, size := taskSet(task)
		required, met = size, len(within(matched, names))
	}
	of := float64(max(required, 1))
	penalty := min(1, conflictPenalty*(float64(len(conflicts))/of))
	score := max(0, min(1, float64(met)/of*(1-penalty)))
	c := Coherence{
		Compatible:     len(conflicts) == 0 && score >= coherenceForProceed,
		Score:          similarity.Round4(score),
		ValueAlignment: ValueAlignment{Matched: matched, Unmatched: unmatched, Conflicts: conflicts},
		Conditions:     []string{},
	}
	c.Proceed = c.Compatible
	if len(conflicts) > 0 {
		c.ProposedResolution = &Resolution{"escalate_to_principals", "Value conflict requires human decision"}
	}
	return c
}

// taskSet returns the names that a task requires, and the size of the set: an element that is
// not a text counts but matches nothing.
func taskSet(task value) (names map[string]bool, size int) {
	names, others := map[string]bool{}, map[any]bool{}
	objects := 0
	for _, element := range task.each() {
		switch v := element.v.(type) {
		case string:
			names[v] = true
		case []any:
			objects++
		default:
			others[v] = true
		}
	}
	return names, len(names) + len(others) + objects
}
