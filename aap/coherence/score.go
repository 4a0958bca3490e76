package coherence

import "github.com/plumbline/plumbline/schema"

// conflictPenalty is the weight of a conflict (AAP section 6.4).
const conflictPenalty = 0.5

// requiredValues returns the values that the task requires, each once, and where
// they came from: the first list that names any.
func requiredValues(task *Task, initiator, responder *side) ([]string, schema.RequiredFrom) {
	switch {
	case len(task.Required) > 0:
		return distinct(task.Required), schema.RequiredByTask
	case len(task.Proposal.ValuesIntersection) > 0:
		return distinct(task.Proposal.ValuesIntersection), schema.RequiredByProposal
	}
	return distinct(initiator.declared, responder.declared), schema.RequiredByCards
}

// score is AAP section 6.4, clamped to 0..1 and not rounded; 0 where nothing is
// required. Conflicts are those within the required values that stand.
func score(matched, required, conflicts int) float64 {
	if required == 0 {
		return 0
	}
	total := float64(required)
	penalty := conflictPenalty * (float64(conflicts) / total)
	return min(max(float64(matched)/total*(1-penalty), 0), 1)
}
