package exporter

import (
	"context"
	"errors"
	"fmt"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/seal"
)

// Cards is the registry (cards.Registry).
type Cards interface {
	Lookup(ctx context.Context, cardID string) (*cards.Card, error)
}

// merkle is the value in a card that commits the agent to a log (AAP section 4.7).
const merkle = "merkle"

// convert converts a part whose rows agree with the receipts to the contents of its bundle, and
// begins the verdict on the session. It releases the records of the part.
func (e *exporter) convert(ctx context.Context, j *job) error {
	if j.repeated {
		return nil
	}
	if j.differs.Empty() {
		numbered := seal.Order(j.part.Traces)
		committed, err := e.addCards(ctx, j)
		if err != nil {
			return err
		}
		if j.failed == nil {
			j.contents, j.judge, j.failed = seal.Read(&j.part, numbered, e.cfg.OutputLimit, e.rules)
		}
		if j.judge != nil && e.anchors.log == nil {
			for _, card := range committed {
				j.judge.Unlogged(card)
			}
		}
	}
	if j.judge == nil {
		j.differs.Changed = append(j.differs.Changed, seal.Changed(j.part.Traces)...)
	}
	if !j.differs.Empty() { // the difference is the more useful report
		j.failed = nil
	}
	for _, t := range j.part.Traces {
		t.Raw, t.Verdict = nil, nil // the contents have it
	}
	return nil
}

// addCards adds the cards that the verdicts of the part refer to. It returns the ids of those that
// commit their agent to a transparency log.
func (e *exporter) addCards(ctx context.Context, j *job) (committed []string, err error) {
	j.part.Cards = map[string][]byte{}
	for _, t := range j.part.Traces {
		if t.Verdict == nil { // it was removed: a verdict is stored before its trace gets a receipt
			j.failed = fmt.Errorf("trace %q: its verdict is missing", t.TraceID)
			return nil, nil
		}
		if t.Verdict.Metadata.CardDigest.IsZero() {
			continue
		}
		card, err := e.cards.Lookup(ctx, t.Verdict.CardID)
		if errors.Is(err, cards.ErrUnknown) {
			j.failed = fmt.Errorf("card %q of a verdict: %w", t.Verdict.CardID, err)
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if card.Card.Digest != t.Verdict.Metadata.CardDigest {
			j.failed = fmt.Errorf("trace %q: its verdict rests on another content of card %q than is registered", t.TraceID, t.Verdict.CardID)
			return nil, nil
		}
		if card.Card.Audit.TamperEvidence == merkle && j.part.Cards[t.Verdict.CardID] == nil {
			committed = append(committed, t.Verdict.CardID)
		}
		j.part.Cards[t.Verdict.CardID] = card.Card.Raw
	}
	return committed, nil
}
