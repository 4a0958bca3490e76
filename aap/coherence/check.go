package coherence

import (
	"errors"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

// EngineVersion names this algorithm; it changes whenever any result could.
const EngineVersion = "plumbline-coherence/3"

// Party is one side of a handshake: the statements of the message about it, and the known facts
// about its card.
type Party struct {
	Card      *schema.Card // nil when the card is unknown
	CardID    string       // card_id in the message; empty where the message names no card
	AgentID   string       // the sender; empty where it is unknown
	RevokedAt time.Time    // of the card; zero when it is not revoked
	Newer     string       // card_id of a newer card of the agent that is in force; empty where there is none
}

// Task is the task that the parties want to do together.
type Task struct {
	Required []string             // values_required of the request's task_context
	Proposal schema.Collaboration // proposed_collaboration of the check
}

// Assessor judges coherence. It is immutable and may be shared between goroutines.
type Assessor struct {
	minimum     float64
	methodology string
}

// NewAssessor returns an assessor with th.MinCoherence. The error lists every invalid
// threshold.
func NewAssessor(th aap.Thresholds) (*Assessor, error) {
	if err := th.Validate(); err != nil {
		return nil, fmt.Errorf("coherence: %w", err)
	}
	a := &Assessor{minimum: th.MinCoherence}
	if a.minimum != aap.DefaultThresholds().MinCoherence {
		a.methodology = th.Methodology
	}
	return a, nil
}

// Check judges whether the parties can proceed with the task. at is the judge's own time; it
// decides whether the cards are in force. The time of the message does not, since a message may
// claim any time.
func (a *Assessor) Check(initiator, responder Party, task Task, at time.Time) schema.Assessment {
	return a.judge(newSide(initiator, at), newSide(responder, at), task, at)
}

func (a *Assessor) judge(initiator, responder *side, task Task, at time.Time) schema.Assessment {
	m := newMatter(initiator, responder, task)
	proposed := m.resolve(a.minimum)
	matched, unmatched := m.matched()
	score := score(len(matched), len(m.required), len(m.open()))
	found := schema.Assessment{
		Coherence: schema.Coherence{
			Score:     similarity.Round4(score),
			Alignment: schema.ValueAlignment{Matched: matched, Unmatched: unmatched, Conflicts: m.conflicts()},
		},
		Outcome: schema.Outcome{
			Conditions:         []string{},
			ProposedResolution: proposed,
			Reasons:            m.reasons(score, a.minimum),
			ResolutionSteps:    append([]schema.ResolutionStep{}, m.steps...),
			Metadata: schema.CoherenceMetadata{
				EngineVersion: EngineVersion, Profile: aap.ProfileSpec,
				MinCoherence: a.minimum, Methodology: a.methodology,
				RequiredFrom:    m.from,
				InitiatorDigest: initiator.digest(), ResponderDigest: responder.digest(),
				AssessedAt: at.UTC(),
			},
		},
	}
	if len(found.Reasons) == 0 {
		found.Compatible, found.Proceed = true, true
		found.Conditions = m.conditions()
	}
	return found
}

// reasons lists the reasons not to proceed.
func (m *matter) reasons(score, minimum float64) []schema.Reason {
	reasons := []schema.Reason{}
	for i, s := range m.sides {
		for _, reason := range s.reasons {
			reason.Side = sideNames[i]
			reasons = append(reasons, reason)
		}
	}
	if len(reasons) > 0 {
		return reasons // the other reasons do not concern these cards
	}
	for i, s := range m.sides {
		var actions []string // that the side is given and its card forbids
		for _, a := range m.banned {
			if a.side == i {
				actions = append(actions, a.name)
			}
		}
		if len(actions) > 0 {
			reasons = append(reasons, schema.Reason{
				Code: schema.ReasonForbiddenAction, Side: sideNames[i], AgentID: s.party.Card.AgentID, CardID: s.party.Card.CardID,
				Description: "its card forbids the proposed action " + quote(actions[0]) + among(len(actions)),
			})
		}
	}
	if n := len(m.open()); n > 0 {
		reasons = append(reasons, schema.Reason{
			Code: schema.ReasonValueConflict, Description: fmt.Sprintf("unresolved conflicts: %d", n),
		})
	}
	switch {
	case len(m.required) == 0:
		reasons = append(reasons, schema.Reason{
			Code: schema.ReasonNothingRequired, Description: "no value is required and none is declared: nothing shows that the agents agree",
		})
	case score < minimum:
		reasons = append(reasons, schema.Reason{
			Code: schema.ReasonLowScore, Description: fmt.Sprintf("the score %v is below %v", score, minimum),
		})
	}
	return reasons
}

// Answer returns the result message that answers check with an assessment. The caller signs it.
func Answer(check *schema.CoherenceCheck, found schema.Assessment, at time.Time) *schema.CoherenceResult {
	return &schema.CoherenceResult{
		RequestID: check.RequestID,
		Coherence: found.Coherence,
		Outcome:   found.Outcome,
		Timestamp: at.UTC(),
	}
}

// FreshWindow is how far the time of a message may be from the receiver's clock, before or
// after it. Answered requests must be remembered for twice as long.
const FreshWindow = 300 * time.Second

// The reasons to refuse a message by section 9.4.
var (
	ErrStale  = errors.New("the message is too old")
	ErrFuture = errors.New("the message is of the future")
)

// Fresh checks that a message sent at the given time may be answered at now. Both bounds are
// inside the window. The error wraps ErrStale or ErrFuture.
func Fresh(sent, now time.Time) error {
	age := now.Sub(sent)
	switch {
	case age > FreshWindow:
		return fmt.Errorf("%w: %s old, at most %s are allowed", ErrStale, age, FreshWindow)
	case age < -FreshWindow:
		return fmt.Errorf("%w: %s ahead, at most %s are allowed", ErrFuture, -age, FreshWindow)
	}
	return nil
}

// conflictPenalty is the weight of a conflict (AAP section 6.4).
const conflictPenalty = 0.5

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
