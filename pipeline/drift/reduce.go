package drift

import (
	"context"
	"errors"
	"strings"
	"time"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// Registry provides what drift needs from cards (cards.Registry).
type Registry interface {
	Lookup(ctx context.Context, cardID string) (*cards.Card, error)
	RetainUntil(agentID string, received time.Time) time.Time
}

// reducer converts messages to entries. It reuses its memory and must be used by one goroutine.
type reducer struct {
	registry Registry
	decoder  schema.Decoder
	trace    schema.Trace
	facts    map[string]aapdrift.CardFacts // facts of registered cards, which never change; at most maxFacts
}

// maxFacts is how many cards' facts the reducer of a partition keeps; others are looked up.
const maxFacts = 4096

func newReducer(registry Registry) *reducer {
	return &reducer{registry: registry, facts: map[string]aapdrift.CardFacts{}}
}

// reduce returns the entry of m, without references to its bytes. An invalid trace is a refused
// entry, not an error: the verifier stores it. An error is the registry's; the call is safe to
// retry.
func (r *reducer) reduce(ctx context.Context, m stream.Message) (*entry, error) {
	e := &entry{message: m, bytes: len(m.Data)}
	e.message.Slim()
	if err := r.decoder.Admit(&r.trace, m.Agent, m.Data); err != nil {
		if _, refused := errors.AsType[*schema.Refusal](err); !refused {
			return nil, err
		}
		e.refused = true
		return e, nil
	}
	facts, err := r.factsOf(ctx, r.trace.CardID)
	if err != nil {
		return nil, err
	}
	e.sample = aapdrift.SampleOf(&r.trace, facts)
	e.session = strings.Clone(schema.SessionID(&r.trace))
	e.id = fingerprintOf(e.sample.TraceID)
	e.future = r.trace.Timestamp.After(m.Received)
	e.order = min(r.trace.Timestamp.UnixNano(), m.Received.UnixNano())
	return e, nil
}

// factsOf returns what is known about a card now. A trace that arrived before its card is
// measured without it.
func (r *reducer) factsOf(ctx context.Context, cardID string) (aapdrift.CardFacts, error) {
	if facts, ok := r.facts[cardID]; ok {
		return facts, nil
	}
	card, err := r.registry.Lookup(ctx, cardID)
	if errors.Is(err, cards.ErrUnknown) {
		return aapdrift.CardFacts{CardID: strings.Clone(cardID)}, nil
	}
	if err != nil {
		return aapdrift.CardFacts{}, err
	}
	if len(r.facts) >= maxFacts {
		clear(r.facts)
	}
	facts := aapdrift.FactsOf(card.Card)
	r.facts[facts.CardID] = facts
	return facts, nil
}
