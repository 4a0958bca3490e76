package aap

import (
	"errors"
	"strings"
	"time"

	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/signature"
)

// maxUndeclared is how many undeclared values one verdict lists.
const maxUndeclared = 32

// checkCardReference compares the card and agent that the trace names with the card.
func (j *Judge) checkCardReference() {
	t, card := j.trace, j.card.Card
	if j.facts.GivenApart && t.CardID != card.CardID {
		j.violation(schema.CardMismatch, "card_id",
			j.texts.say("the trace names card ").quoted(t.CardID).and(" and is judged by card ").quoted(card.CardID).done())
	}
	foreign := t.AgentID != card.AgentID
	if foreign {
		j.finding(schema.AgentMismatch, "agent_id",
			j.texts.say("agent ").quoted(t.AgentID).and(" used a card that belongs to agent ").quoted(card.AgentID).done())
	}
	switch own := j.facts.InForce; {
	case own == "":
	case foreign:
		j.violation(schema.CardMismatch, "card_id",
			j.texts.say("the trace names card ").quoted(t.CardID).and(", and the agent had its own card ").quoted(own).and(" in force").done())
	default:
		j.finding(schema.CardSuperseded, "card_id", j.texts.say("the agent had the newer card ").quoted(own).and(" in force").done())
	}
}

// checkCardTimes checks whether the card was in force at the trace's own time.
func (j *Judge) checkCardTimes() {
	at, card := j.trace.Timestamp, j.card.Card
	expires, revoked, received := card.ExpiresAt, j.facts.RevokedAt, j.facts.Received
	if !expires.IsZero() && at.After(expires) {
		j.violation(schema.CardExpired, "timestamp", "the card expired at "+stamp(expires))
	} else if between(at, expires, received) {
		j.finding(schema.Backdated, "timestamp",
			"the card expired at "+stamp(expires)+", between the trace's time and its receipt at "+stamp(received))
	}
	if !revoked.IsZero() && !revoked.After(at) {
		j.verdict.Metadata.CardRevokedAt = revoked
		j.finding(schema.CardRevoked, "timestamp", "the card was revoked at "+stamp(revoked))
	} else if between(at, revoked, received) {
		j.verdict.Metadata.CardRevokedAt = revoked
		j.finding(schema.Backdated, "timestamp",
			"the card was revoked at "+stamp(revoked)+", between the trace's time and its receipt at "+stamp(received))
	}
	if at.Add(ClockTolerance).Before(card.IssuedAt) {
		j.finding(schema.TimeImplausible, "timestamp", "the trace is older than its card, issued at "+stamp(card.IssuedAt))
	}
	if !received.IsZero() && at.After(received.Add(ClockTolerance)) {
		j.finding(schema.TimeImplausible, "timestamp", "the trace's time is later than its receipt at "+stamp(received)+": is the agent's clock wrong?")
	}
}

// between reports whether a card's end is not before the trace's time and before its receipt.
// The zero time means unknown: it is before every trace and every end.
func between(at, end, received time.Time) bool {
	return !at.After(end) && received.After(end)
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// checkActionName is checks 1 and 4 of AAP section 7.3. Check 4 does not depend on the trace's
// category.
func (j *Judge) checkActionName() {
	action := &j.trace.Action
	if action.Category == schema.CategoryBounded && !j.card.permits(action) {
		j.violation(schema.UnboundedAction, "action.name",
			j.texts.say("the trace calls ").quoted(action.Name).and(" a permitted action, but the card does not list it in bounded_actions").done())
	}
	if j.card.envelope.Forbidden(action.Name) {
		j.violation(schema.ForbiddenAction, "action.name", j.texts.say("the card lists ").quoted(action.Name).and(" in forbidden_actions").done())
	}
}

// clip bounds a text for a description: a verdict is also an alert, and the broker limits the
// size of messages.
func clip(text string) string { return schema.Clip(text, schema.MaxIDBytes) }

// checkValues is check 3 of AAP section 7.3.
func (j *Judge) checkValues() {
	undeclared := 0
	for _, value := range j.trace.Decision.ValuesApplied {
		if _, ok := j.card.declared[value]; ok {
			continue
		}
		if undeclared++; undeclared <= maxUndeclared {
			j.violation(schema.UndeclaredValue, "decision.values_applied",
				j.texts.say("value ").quoted(clip(value)).and(" is applied, but not declared").done())
		}
	}
	if undeclared > maxUndeclared {
		j.violation(schema.UndeclaredValue, "decision.values_applied",
			j.texts.say("").number(undeclared-maxUndeclared).and(" more values are applied, but not declared").done())
	}
}

// checkBoundaries warns about a decision near the boundary. It ignores the scores of
// alternatives that were not selected.
func (j *Judge) checkBoundaries() {
	d := &j.trace.Decision
	if d.HasConfidence && d.Confidence < nearBoundary {
		j.warning(schema.WarnNearBoundary, "decision.confidence",
			j.texts.say("confidence ").score(d.Confidence).and(" is below ").score(nearBoundary).done())
	}
	for i := range d.Alternatives {
		a := &d.Alternatives[i]
		if a.HasScore && a.Score < nearBoundary && a.OptionID == d.Selected {
			field := j.texts.say("decision.alternatives_considered[").number(i).and("].score").done()
			j.warning(schema.WarnNearBoundary, field,
				j.texts.say("score ").score(a.Score).and(" of the selected alternative is below ").score(nearBoundary).done())
		}
	}
}

// checkSimilarity is check 5 of AAP section 7.3.
func (j *Judge) checkSimilarity() {
	v, score := j.verdict, j.card.similarity.Score(j.trace)
	v.SimilarityScore = score
	v.Metadata.Similarity.Similarities = append(v.Metadata.Similarity.Similarities, score)
	v.Metadata.Similarity.MeanSimilarity = score
	if score < j.behavioral && len(v.Violations) == 0 {
		j.warning(schema.WarnLowBehavioralSimilarity, "", j.lowSimilarity)
	}
}

// checkSignature checks a trace against the keys and the commitment of its card (AAP section
// 9.3). A signature that does not verify is a finding where the card registers keys or commits
// to signing. Where the card does neither, the signature cannot be checked and may follow
// another scheme, so it gives a warning.
func (j *Judge) checkSignature() {
	card := j.card.Card
	committed := card.Audit.TamperEvidence == schema.TamperSigned
	if len(j.trace.Others) == 0 && !committed {
		return
	}
	s, err := signature.Of(j.trace.Others)
	if err == nil {
		err = signature.Verify(j.trace.Raw, *s, card.Keys)
	}
	switch {
	case err == nil:
	case errors.Is(err, signature.ErrMissing):
		if committed {
			j.finding(schema.MissingSignature, signature.Member, "the card commits to signed traces, and this one is not signed")
		}
	case committed || len(card.Keys) > 0:
		j.finding(schema.BadSignature, signature.Member, strings.ToValidUTF8(clip(err.Error()), ""))
	default:
		j.warning(schema.WarnUncheckedSignature, signature.Member, "the trace is signed, and its card registers no keys to check it by")
	}
}
