package coherence

import "github.com/plumbline/plumbline/schema"

// conflictPenalty is the weight of a conflict (AAP section 6.4).
const conflictPenalty = 0.5

// requiredValues returns the values that the task requires, without duplicates, and their
// source. A task that names none requires all values that either card declares. The
// values_intersection of a check requires nothing: both cards declare those values, so the
// score would always be 1.
func requiredValues(task *Task, initiator, responder *side) ([]string, schema.RequiredFrom) {
	if len(task.Required) > 0 {
		return distinct(task.Required), schema.RequiredByTask
	}
	return distinct(initiator.declared, responder.declared), schema.RequiredByCards
}

// score computes the score of AAP section 6.4, clamped to 0..1 and not rounded; 0 where nothing
// is required. conflicts counts all unresolved conflicts, whether or not the task requires
// their values.
func score(matched, required, conflicts int) float64 {
	if required == 0 {
		return 0
	}
	total := float64(required)
	penalty := conflictPenalty * (float64(conflicts) / total)
	return min(max(float64(matched)/total*(1-penalty), 0), 1)
}
