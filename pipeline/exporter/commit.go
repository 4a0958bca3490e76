package exporter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/seal"
)

// compare compares the rows with the receipts, and begins the verdict on the
// session where they agree.
func (e *exporter) compare(ctx context.Context, j *job) error {
	if err := e.dropRepeated(ctx, j); err != nil {
		return err
	}
	plan := &j.part.Plan
	receipts := j.session.receipts[:j.session.until(plan.Cut)]
	j.repeated = len(receipts) == 0
	j.part.Traces, j.differs = seal.Compare(j.part.Traces, receipts, plan.After, plan.Cut)
	if j.repeated || !j.differs.Empty() {
		return nil
	}
	numbered := seal.Order(j.part.Traces)
	if err := e.addCards(ctx, j); err != nil || j.failed != nil {
		return err
	}
	j.judge, j.failed = seal.Judge(&j.part, numbered)
	return nil
}

// commit fixes the plan and places the file.
func (e *exporter) commit(ctx context.Context, j *job) error {
	plan := &j.part.Plan
	for j.judge != nil {
		if err := e.fix(ctx, j); err != nil {
			return err
		}
		j.part.Verdict, j.carry = j.judge.Finish(plan.Session.Answers, time.Unix(plan.ExportedAt, 0))
		in, err := seal.Compose(&j.part, seal.Generator{Name: e.cfg.Generator, URL: e.cfg.GeneratorURL}, e.cfg.OutputLimit)
		if err != nil {
			j.failed = err
			return nil //nolint:nilerr // the session is held for it, the others go on
		}
		j.bundle, err = seal.Place(e.cfg.bundleDir(), &j.part, in, e.key)
		j.redacted = in.Redactions
		switch {
		case errors.Is(err, seal.ErrUnfit):
			j.failed = err
			return nil
		case errors.Is(err, seal.ErrTaken):
			plan.ExportedAt++
			plan.File = seal.File(j.part.AgentID, j.part.SessionID, plan.ExportedAt)
		case !errors.Is(err, seal.ErrOtherKey):
			return err
		}
		plan.KeyID, j.fixed = e.keyID, false
	}
	return nil
}

// addCards adds the cards that the verdicts of the part rest on.
func (e *exporter) addCards(ctx context.Context, j *job) error {
	j.part.Cards = map[string][]byte{}
	for _, t := range j.part.Traces {
		if t.Verdict == nil { // it is stored before its trace is receipted
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
		j.part.Cards[t.Verdict.CardID] = card.Card.Raw
	}
	return nil
}

// fix writes the plan into the bucket, unless it is there.
func (e *exporter) fix(ctx context.Context, j *job) error {
	if j.fixed {
		return nil
	}
	if err := e.write(ctx, j); err != nil {
		return fmt.Errorf("fix the plan: %w", err)
	}
	j.fixed = true
	return nil
}

// write writes the job's record over the revision it was read with.
func (e *exporter) write(ctx context.Context, j *job) error {
	value, err := j.part.Plan.Encode()
	if err != nil {
		return err
	}
	key := seal.Key(j.part.AgentID, j.part.SessionID)
	if j.revision == 0 {
		j.revision, err = e.seals.Create(ctx, key, value)
	} else {
		j.revision, err = e.seals.Update(ctx, key, value, j.revision)
	}
	return err
}

// finish marks the part as sealed: all that follows from it is recorded.
func (e *exporter) finish(ctx context.Context, j *job) error {
	if j.bundle == nil {
		return nil
	}
	j.part.Plan.State, j.part.Plan.SHA256 = seal.Sealed, j.bundle.SHA256
	j.part.Plan.Session = seal.Session{Carry: j.carry}
	if err := e.write(ctx, j); err != nil {
		return fmt.Errorf("mark as sealed: %w", err)
	}
	return nil
}
