package coherence

import (
	"fmt"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/schema"
)

// EngineVersion names this algorithm; it changes whenever any result could.
const EngineVersion = "plumbline-coherence/1"

// Party is one side of a handshake: what the message said of it, and what is
// known of its card.
type Party struct {
	Card      *schema.Card // nil when nobody has it
	CardID    string       // by which the message names the card; empty where it names none
	AgentID   string       // who speaks; empty where that is not known
	RevokedAt time.Time    // of the card; zero when it is not revoked
}

// Task is what the parties want to do together.
type Task struct {
	Required []string             // values_required of the request's task_context
	Proposal schema.Collaboration // proposed_collaboration of the check
}

// Assessor judges coherence. It is immutable and may be shared between goroutines.
type Assessor struct {
	minimum     float64
	methodology string
}

// NewAssessor returns an assessor by th.MinCoherence. The error names every
// threshold that is not valid.
func NewAssessor(th aap.Thresholds) (*Assessor, error) {
	if err := th.Validate(); err != nil {
		return nil, fmt.Errorf("coherence: %w", err)
	}
	return &Assessor{minimum: th.MinCoherence, methodology: th.Methodology}, nil
}

// Check judges whether the parties can proceed with the task. Cards are in force
// or not at the time at, which is the responder's own, not the message's: a
// message may claim any time.
func (a *Assessor) Check(initiator, responder Party, task Task, at time.Time) schema.Assessment {
	return schema.Assessment{}
}

// Answer makes the result message that answers check with an assessment, to be
// signed by the caller. The time must not be before the check's.
func Answer(check *schema.CoherenceCheck, found schema.Assessment, at time.Time) *schema.CoherenceResult {
	return &schema.CoherenceResult{
		RequestID: check.RequestID,
		Coherence: found.Coherence,
		Outcome:   found.Outcome,
		Timestamp: at.UTC(),
	}
}
