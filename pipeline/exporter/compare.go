package exporter

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// compare compares the rows with the receipts. Where they agree it begins the verdict on the
// session.
func (e *exporter) compare(ctx context.Context, j *job) error {
	if err := e.dropRepeated(ctx, j); err != nil {
		return err
	}
	plan := &j.part.Plan
	receipts := j.receipts()
	j.repeated = len(receipts) == 0
	j.part.Traces, j.differs = seal.Compare(j.part.Traces, receipts, plan.After, plan.Cut)
	if j.repeated {
		return nil
	}
	if err := e.read(ctx, j); err != nil {
		return err
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

// read reads the contents of a part whose rows agree with the receipts.
func (e *exporter) read(ctx context.Context, j *job) error {
	if !j.differs.Empty() {
		return nil
	}
	numbered := seal.Order(j.part.Traces)
	if err := e.addCards(ctx, j); err != nil || j.failed != nil {
		return err
	}
	j.contents, j.judge, j.failed = seal.Read(&j.part, numbered, e.cfg.OutputLimit, e.rules)
	e.findUnlogged(j)
	return nil
}

// addCards adds the cards that the verdicts of the part refer to.
func (e *exporter) addCards(ctx context.Context, j *job) error {
	j.part.Cards, j.merkle = map[string][]byte{}, nil
	for _, t := range j.part.Traces {
		if t.Verdict == nil { // it was removed: a verdict is stored before its trace gets a receipt
			j.failed = fmt.Errorf("trace %q: its verdict is missing", t.TraceID)
			return nil
		}
		if t.Verdict.Metadata.CardDigest.IsZero() {
			continue
		}
		card, err := e.cards.Lookup(ctx, t.Verdict.CardID)
		if errors.Is(err, cards.ErrUnknown) {
			j.failed = fmt.Errorf("card %q of a verdict: %w", t.Verdict.CardID, err)
			return nil
		}
		if err != nil {
			return err
		}
		if card.Card.Digest != t.Verdict.Metadata.CardDigest {
			j.failed = fmt.Errorf("trace %q: its verdict rests on another content of card %q than is registered", t.TraceID, t.Verdict.CardID)
			return nil
		}
		if card.Card.Audit.TamperEvidence == merkle && j.part.Cards[t.Verdict.CardID] == nil {
			j.merkle = append(j.merkle, t.Verdict.CardID)
		}
		j.part.Cards[t.Verdict.CardID] = card.Card.Raw
	}
	return nil
}

// dropRepeated removes from a part the traces that were published again long after they were
// sealed. The broker stored such a trace a second time and the tables did not, so its row has a
// sequence of an earlier part. The row alone is not enough to leave a trace out of a bundle:
// stream TRACES must hold these bytes at that sequence.
func (e *exporter) dropRepeated(ctx context.Context, j *job) error {
	after := j.part.Plan.After
	receipted := make(map[schema.Digest]bool, len(j.session.receipts))
	for i := range j.session.receipts {
		receipted[j.session.receipts[i].Digest] = true
	}
	for _, row := range j.part.Traces {
		if row.Sequence > after || !receipted[row.Digest] {
			continue
		}
		earlier, err := e.holds(ctx, row)
		if err != nil {
			return err
		}
		if earlier {
			j.session.receipts = slices.DeleteFunc(j.session.receipts, func(r schema.Receipt) bool { return r.Digest == row.Digest })
		}
	}
	return nil
}

// holds reports whether the stream has the row's bytes at the row's sequence.
func (e *exporter) holds(ctx context.Context, row *store.StoredTrace) (bool, error) {
	data, err := e.broker.Trace(ctx, row.Sequence)
	if errors.Is(err, stream.ErrNotFound) {
		return false, nil
	}
	return err == nil && schema.DigestOf(data) == row.Digest, err
}
