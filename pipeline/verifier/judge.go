package verifier

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// Registry is what the verifier asks about cards (cards.Registry).
type Registry interface {
	Lookup(ctx context.Context, cardID string) (*cards.Card, error)
	Warm(ctx context.Context, agents iter.Seq[string])
	Instead(card *cards.Entry, agentID string, at time.Time) *cards.Entry
	RevokedAt(cardID string) time.Time
	RetainUntil(agentID string, received time.Time) time.Time
}

// Messages is what the verifier asks about the messages that traces cite
// (messages.Auditor).
type Messages interface {
	Findings(ctx context.Context, t *schema.Trace, now time.Time) ([]schema.Remark, error)
}

// bench is where one trace after the other is judged; its memory is reused. It
// is for one goroutine.
type bench struct {
	registry Registry
	messages Messages // nil: no agent's messages are held to rules
	judge    *aap.Judge

	decoder schema.Decoder
	trace   schema.Trace
	verdict schema.Verdict
}

// warm has the cards fetched together that memory lacks and the messages are about to be
// judged by.
func (b *bench) warm(ctx context.Context, messages []stream.Message) {
	b.registry.Warm(ctx, func(yield func(agentID string) bool) {
		for i := range messages {
			if !yield(messages[i].Agent) {
				return
			}
		}
	})
}

// put judges the message that the intake took last, and tells whether it will
// be stored. The error is the registry's or that of the messages: then nothing was
// added, and the same again is right.
func (b *bench) put(ctx context.Context, in *intake, m *stream.Message, created, now time.Time) (stored bool, err error) {
	refusal, err := b.admit(&b.trace, m)
	if err != nil {
		return false, err
	}
	if refusal != nil {
		in.refused(m, refusal)
		return false, nil
	}
	if err := b.pass(ctx, &b.trace, m.Received, now); err != nil {
		return false, err
	}
	return true, in.judged(&b.trace, &b.verdict, b.meta(&b.trace, m, created))
}

// admit reads a message into t, or says why it is refused.
func (b *bench) admit(t *schema.Trace, m *stream.Message) (refusal *schema.Refusal, err error) {
	err = b.decoder.Admit(t, m.Agent, m.Data)
	if errors.As(err, &refusal) {
		return refusal, nil
	}
	return nil, err
}

// meta is what is stored of a trace beside its bytes.
func (b *bench) meta(t *schema.Trace, m *stream.Message, created time.Time) store.Meta {
	return store.Meta{
		Received:      m.Received,
		Sequence:      m.Sequence,
		StreamCreated: created,
		Partition:     m.Partition,
		SessionID:     schema.SessionID(t),
		RetainUntil:   b.registry.RetainUntil(t.AgentID, m.Received),
		Redelivered:   m.Redelivered,
	}
}

// pass passes the verdict on t, received by the broker at that time.
func (b *bench) pass(ctx context.Context, t *schema.Trace, received, now time.Time) error {
	card, err := b.registry.Lookup(ctx, t.CardID)
	if errors.Is(err, cards.ErrUnknown) {
		b.judge.Unknown(t, now, &b.verdict)
		return nil
	}
	if err != nil {
		return err
	}
	facts := aap.Facts{
		Received:  received,
		RevokedAt: b.registry.RevokedAt(t.CardID),
	}
	if own := b.registry.Instead(card.Entry, t.AgentID, t.Timestamp); own != nil {
		facts.InForce = own.CardID
	}
	if b.messages != nil {
		if facts.Messages, err = b.messages.Findings(ctx, t, now); err != nil {
			return err
		}
	}
	b.judge.Verify(t, card.Compiled, facts, now, &b.verdict)
	hideSecrets(b.verdict.Violations)
	hideSecrets(b.verdict.Findings)
	hideSecrets(b.verdict.Warnings)
	return nil
}

// hideSecrets redacts the texts of the trace that remarks quote: rows, alerts and answers
// repeat them, and the name of an action or a tool may hold a secret.
func hideSecrets(remarks []schema.Remark) {
	for i := range remarks {
		if r := &remarks[i]; strings.IndexByte(r.Description, '"') >= 0 {
			r.Description, _ = aivs.AllRules.Message(r.Description)
		}
	}
}
