package verifier

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/aivs/redact"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/messages"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// Registry provides what the verifier needs from cards (cards.Registry).
type Registry interface {
	Lookup(ctx context.Context, cardID string) (*cards.Card, error)
	Know(ctx context.Context, agentID string) error
	Knows(agentID string) bool
	Ahead(ctx context.Context, agents iter.Seq[string])
	Warm(ctx context.Context, agents iter.Seq[string])
	Instead(card *cards.Entry, agentID string, at time.Time) *cards.Entry
	RevokedAt(cardID string) time.Time
	RetainUntil(agentID string, received time.Time) time.Time
}

// workspace judges one message after the other in reused memory. It must be used by one goroutine.
type workspace struct {
	registry Registry
	messages *messages.Auditor // nil: messages are not checked for any agent
	rules    *aap.Judge
	decoder  schema.Decoder
}

// judgement is the result of judging one message. It is reused, and its texts alias the message.
type judgement struct {
	refusal *schema.Refusal // nil: the message is a trace, and will be stored
	trace   schema.Trace
	meta    store.Meta
	verdict schema.Verdict
	dated   bool // the verdict depends on when the trace was received or judged (see verify)
}

// warm reads the cards of the messages' agents that are not in memory, all together.
func (w *workspace) warm(ctx context.Context, slice []stream.Message) {
	w.registry.Warm(ctx, stream.Agents(slice))
}

// judge judges a message into j. An error is from the registry or the message records, and the call is safe to retry.
func (w *workspace) judge(ctx context.Context, j *judgement, m *stream.Message, created, now time.Time) (err error) {
	if j.refusal, err = w.admit(&j.trace, m); err != nil || j.refusal != nil {
		return err
	}
	if j.dated, err = w.verify(ctx, &j.trace, &j.verdict, m.Received, now); err != nil {
		return err
	}
	j.meta = w.meta(&j.trace, m, created)
	return nil
}

// admit decodes a message into t, or returns why it is refused.
func (w *workspace) admit(t *schema.Trace, m *stream.Message) (refusal *schema.Refusal, err error) {
	err = w.decoder.Admit(t, m.Agent, m.Data)
	if errors.As(err, &refusal) {
		return refusal, nil
	}
	return nil, err
}

// meta returns what is stored about a trace in addition to its bytes.
func (w *workspace) meta(t *schema.Trace, m *stream.Message, created time.Time) store.Meta {
	trace, span := m.PublishedIn()
	return store.Meta{
		OTelTraceID:   trace,
		OTelSpanID:    span,
		Received:      m.Received,
		Sequence:      m.Sequence,
		StreamCreated: created,
		Partition:     m.Partition,
		SessionID:     schema.SessionID(t),
		RetainUntil:   w.registry.RetainUntil(t.AgentID, m.Received),
		Redelivered:   m.Redelivered,
	}
}

// verify judges t, which the broker received at the given time, into v. The verdict is dated if another
// receipt of the same bytes, or judging them earlier, could have given another one: by a card or a
// message that was not known yet, or before the end of the card.
func (w *workspace) verify(ctx context.Context, t *schema.Trace, v *schema.Verdict, received, now time.Time) (dated bool, err error) {
	if err := w.registry.Know(ctx, t.AgentID); err != nil { // for the card in force, and for meta
		return false, err
	}
	card, err := w.registry.Lookup(ctx, t.CardID)
	if errors.Is(err, cards.ErrUnknown) {
		w.rules.Unknown(t, now, v)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	facts := aap.Facts{
		Received:  received,
		RevokedAt: w.registry.RevokedAt(t.CardID),
	}
	if own := w.registry.Instead(card.Entry, t.AgentID, t.Timestamp); own != nil {
		facts.InForce = own.CardID
	}
	if w.messages != nil {
		if facts.Messages, err = w.messages.Findings(ctx, t, now); err != nil {
			return false, err
		}
	}
	w.rules.Verify(t, card.Compiled, facts, now, v)
	hideSecrets(v.Violations)
	hideSecrets(v.Findings)
	hideSecrets(v.Warnings)
	dated = facts.InForce != "" || len(facts.Messages) > 0 || !v.Metadata.CardRevokedAt.IsZero() ||
		slices.ContainsFunc(v.Findings, func(found schema.Remark) bool { return found.Type == schema.Backdated })
	return dated, nil
}

// hideSecrets redacts what remarks quote from the trace. Rows, alerts and answers repeat it, and
// the name of an action or a tool may contain a secret.
func hideSecrets(remarks []schema.Remark) {
	for i := range remarks {
		if r := &remarks[i]; strings.IndexByte(r.Description, '"') >= 0 {
			r.Description, _ = redact.AllRules.Message(r.Description)
		}
	}
}
