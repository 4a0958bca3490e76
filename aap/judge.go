package aap

import (
	"errors"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/aap/condition"
	"github.com/plumbline/plumbline/schema"
)

// The origin of a verdict.
const (
	EngineVersion    = "plumbline-3" // changes whenever any verdict could change
	AlgorithmVersion = "1.2.0"       // of the published algorithm whose features are used
	ProfileSpec      = "spec"
)

// Thresholds are the calibration constants of AAP section 8.3 by which single traces and values are judged.
// Those of drift are drift.Params.
type Thresholds struct {
	BehavioralSimilarity float64 // BEHAVIORAL_SIMILARITY_THRESHOLD
	MinCoherence         float64 // MIN_COHERENCE_FOR_PROCEED

	// Methodology says how changed thresholds were derived; section 8.3 demands it. It is
	// stored with every result.
	Methodology string
}

// DefaultThresholds returns the published values.
func DefaultThresholds() Thresholds {
	return Thresholds{BehavioralSimilarity: 0.50, MinCoherence: 0.70}
}

// nearBoundary is the bound below which a confidence or score counts as close to the boundary.
// The specification shows the warning without a value; this value is that of the SDKs.
const nearBoundary = 0.35

// Validate reports every threshold that is out of range, and a changed threshold without a
// methodology.
func (t Thresholds) Validate() error {
	var faults []error
	share := func(name string, value float64) {
		if !(value >= 0 && value <= 1) {
			faults = append(faults, fmt.Errorf("threshold of %s: %v is outside 0..1", name, value))
		}
	}
	share("behavioral similarity", t.BehavioralSimilarity)
	share("minimum coherence", t.MinCoherence)
	if t.Methodology == "" && t != DefaultThresholds() {
		faults = append(faults, errors.New("thresholds: a changed one needs a methodology, a text saying how it was derived (AAP section 8.3)"))
	}
	return errors.Join(faults...)
}

// Facts is the knowledge about a trace from other sources than the trace and its card. The zero
// value is that of the offline judge, which knows nothing.
type Facts struct {
	Received   time.Time // by the broker's clock
	InForce    string    // card_id that the agent had in force at the trace's time, where the trace names another one
	RevokedAt  time.Time // of the card
	GivenApart bool      // the card was not chosen by the trace's card_id

	// Messages are findings about the messages that the trace relies on. The caller makes them
	// with message/audit; their severity is not set.
	Messages []schema.Remark
}

// ClockTolerance is how far an agent's clock may be ahead of the broker's, or behind that of
// its card's issuer, before its trace counts as implausible.
const ClockTolerance = 5 * time.Minute

// checks lists the checks of Verify in order: those of AAP section 7.3 under the reference's
// names, then Plumbline's own.
var checks = []string{
	"card_reference", "card_expiration", "autonomy", "forbidden", "escalation", "values", "behavioral_similarity", "signature", "findings",
}

// Judge verifies traces. It reuses its memory and is not safe for concurrent use; make one for
// each goroutine.
type Judge struct {
	engine        string // EngineVersion, with the threshold if it differs from the published one
	methodology   string
	behavioral    float64 // threshold
	lowSimilarity string  // text of the warning

	trace   *schema.Trace
	card    *Compiled
	facts   Facts
	verdict *schema.Verdict

	fields     fields
	conditions condition.Evaluator
	claims     claims
	triggered  bool // some trigger of the card matched
	texts      texts
}

// NewJudge returns a judge. If a threshold differs from the published one, the engine version
// of its verdicts includes the threshold, because the verdict is then another one. The error
// lists every invalid threshold.
func NewJudge(th Thresholds) (*Judge, error) {
	if err := th.Validate(); err != nil {
		return nil, err
	}
	j := &Judge{
		engine:     EngineVersion,
		behavioral: th.BehavioralSimilarity,
		lowSimilarity: fmt.Sprintf("the structural checks pass, but behavioral similarity is below %v",
			th.BehavioralSimilarity),
	}
	if th.BehavioralSimilarity != DefaultThresholds().BehavioralSimilarity {
		j.engine += fmt.Sprintf(" (behavioral_similarity %v)", th.BehavioralSimilarity)
		j.methodology = th.Methodology
	}
	j.conditions.Source = &j.fields
	return j, nil
}

// Verify judges t against c (AAP section 7.3), fills v and reuses its slices. now becomes the
// verdict's timestamp and has no other effect. Strings of v may alias t.Raw.
func (j *Judge) Verify(t *schema.Trace, c *Compiled, f Facts, now time.Time, v *schema.Verdict) {
	j.begin(t, now, v)
	j.card, j.facts, j.triggered = c, f, false
	j.fields.reset(t)
	j.conditions.Reset()
	v.Status, v.CardID = schema.StatusJudged, c.Card.CardID
	v.Metadata.CardDigest = c.Card.Digest
	v.Metadata.ChecksPerformed = append(v.Metadata.ChecksPerformed, checks...)
	v.Metadata.GroundedClaims, v.Metadata.InferredClaims = t.Decision.Claims()

	j.checkCardReference()
	j.checkCardTimes()
	j.checkActionName()
	j.checkEscalation()
	j.checkValues()
	j.checkBoundaries()
	j.checkSimilarity()
	j.checkSignature()
	j.checkAction()
	j.checkValueLimit()
	j.checkApproval()
	j.checkObservations()
	j.reportFields()
	for i := range f.Messages {
		found := &f.Messages[i]
		j.finding(found.Type, found.Field, found.Description)
	}

	v.Verified = len(v.Violations) == 0
	v.RecommendedAction = recommend(v)
}

// Unknown fills v for a trace whose card is unknown: status card_unknown, not verified,
// recommendation review.
func (j *Judge) Unknown(t *schema.Trace, now time.Time, v *schema.Verdict) {
	j.begin(t, now, v)
	v.Status, v.CardID = schema.StatusCardUnknown, t.CardID
	v.RecommendedAction = schema.Review
}

// begin empties v and fills the members that do not depend on the card.
func (j *Judge) begin(t *schema.Trace, now time.Time, v *schema.Verdict) {
	j.trace, j.verdict = t, v
	j.texts.reset()
	*v = schema.Verdict{
		TraceID:    t.TraceID,
		AgentID:    t.AgentID,
		Timestamp:  now.UTC(),
		Violations: emptied(v.Violations),
		Warnings:   emptied(v.Warnings),
		Findings:   emptied(v.Findings),
		Metadata: schema.Metadata{
			AlgorithmVersion: AlgorithmVersion,
			EngineVersion:    j.engine,
			Profile:          ProfileSpec,
			Methodology:      j.methodology,
			TraceDigest:      t.Digest,
			ChecksPerformed:  emptied(v.Metadata.ChecksPerformed),
			Similarity:       schema.SimilarityDetails{Similarities: emptied(v.Metadata.Similarity.Similarities)},
			AbsentTriggers:   emptied(v.Metadata.AbsentTriggers),
		},
	}
}

// emptied returns s without elements. It never returns nil, so JSON has [].
func emptied[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s[:0]
}

func (j *Judge) violation(kind, field, description string) {
	j.verdict.Violations = append(j.verdict.Violations, schema.Remark{
		Type: kind, Severity: severities[kind], Description: description, Field: field,
	})
}

func (j *Judge) finding(kind, field, description string) {
	j.verdict.Findings = append(j.verdict.Findings, schema.Remark{
		Type: kind, Severity: severities[kind], Description: description, Field: field,
	})
}

func (j *Judge) warning(kind, field, description string) {
	j.verdict.Warnings = append(j.verdict.Warnings, schema.Remark{Type: kind, Description: description, Field: field})
}
