package exporter

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// readTraces reads the rows of all jobs. It uses one query for all sessions that are sealed as a
// whole, and one for each part of a longer session.
func (e *exporter) readTraces(ctx context.Context, jobs []*job) error {
	var query store.SessionQuery
	whole := make(map[store.SessionKey]*job, len(jobs))
	var parts []*job
	for _, j := range jobs {
		j.part.Traces = nil
		if plan := &j.part.Plan; plan.Part > 2 || plan.Cut < j.session.highest || j.session.followed {
			parts = append(parts, j)
			continue
		}
		first, last, _, _ := extent(j.receipts())
		if len(whole) == 0 || first.Before(query.From) {
			query.From = first
		}
		if last.After(query.To) {
			query.To = last
		}
		query.Sessions = append(query.Sessions, j.session.key)
		whole[j.session.key] = j
	}
	for trace, err := range e.rows.SessionTraces(ctx, query) {
		if err != nil {
			return err
		}
		if j := whole[store.SessionKey{AgentID: trace.AgentID, SessionID: trace.SessionID}]; j != nil {
			j.part.Traces = append(j.part.Traces, trace)
		}
	}
	for _, j := range parts { // one at a time: a part may be as large as a group
		if err := e.readPart(ctx, j); err != nil {
			return err
		}
	}
	return nil
}

// missingAtOnce is how many digests one query looks up.
const missingAtOnce = 1000

// readPart reads the rows with the sequences of the part. It then looks up by digest the receipts
// without such a row: a trace that was published again has its row at the sequence of an earlier
// part.
func (e *exporter) readPart(ctx context.Context, j *job) error {
	read := func(rows iter.Seq2[*store.StoredTrace, error]) error {
		for trace, err := range rows {
			if err != nil {
				return err
			}
			j.part.Traces = append(j.part.Traces, trace)
		}
		return nil
	}
	query := store.PartQuery{Session: j.session.key, Stream: j.session.stream, After: j.part.Plan.After, Cut: j.part.Plan.Cut}
	query.From, query.To, _, _ = extent(j.receipts())
	if err := read(e.rows.PartTraces(ctx, query)); err != nil {
		return err
	}
	found := make(map[schema.Digest]bool, len(j.part.Traces))
	for _, t := range j.part.Traces {
		found[t.Digest] = true
	}
	var missing []string
	for _, r := range j.receipts() {
		if !found[r.Digest] {
			missing = append(missing, r.Digest.String())
		}
	}
	query.After, query.Cut = 0, 0
	for query.Digests = range slices.Chunk(missing, missingAtOnce) {
		if err := read(e.rows.PartTraces(ctx, query)); err != nil {
			return err
		}
	}
	return nil
}

func (e *exporter) compare(ctx context.Context, j *job) error {
	if err := e.dropRepeated(ctx, j); err != nil {
		return err
	}
	if err := e.dropSealed(ctx, j); err != nil {
		return err
	}
	receipts := j.receipts()
	j.repeated = len(receipts) == 0
	j.part.Traces, j.differs = seal.Compare(j.part.Traces, receipts, func(row *store.StoredTrace) bool {
		return e.index.isOf(j.session, row.StreamCreated)
	}, j.part.Plan.After, j.part.Plan.Cut)
	return nil
}

// dropRepeated removes from a part the traces that were published again long after they were
// sealed. The broker stored such a trace a second time and the tables did not, so its row has a
// sequence of an earlier part. The row alone is not enough to leave a trace out of a bundle:
// stream TRACES must hold these bytes at that sequence. An earlier stream cannot confirm a row: there
// the file of the bundle must hold it (dropSealed).
func (e *exporter) dropRepeated(ctx context.Context, j *job) error {
	current := e.index.created.UnixNano()
	if j.session.stream != current {
		return nil
	}
	receipted := make(map[schema.Digest]bool, len(j.session.receipts))
	for i := range j.session.receipts {
		receipted[j.session.receipts[i].Digest] = true
	}
	for _, row := range j.part.Traces {
		if row.Sequence > j.part.Plan.After || !receipted[row.Digest] || row.StreamCreated.UnixNano() != current {
			continue
		}
		data, err := e.broker.Trace(ctx, row.Sequence)
		if errors.Is(err, stream.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if schema.DigestOf(data) == row.Digest {
			j.drop(row.Digest)
		}
	}
	return nil
}

// drop removes the receipts of a trace that an earlier part holds.
func (j *job) drop(digest schema.Digest) {
	j.session.receipts = slices.DeleteFunc(j.session.receipts, func(r schema.Receipt) bool { return r.Digest == digest })
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
		j.cutAtCards()
		numbered := seal.Order(j.part.Traces)
		committed, err := e.addCards(ctx, j)
		if err != nil {
			return err
		}
		if j.failed == nil {
			j.contents, j.judge, j.failed = seal.Read(&j.part, numbered, e.cfg.OutputLimit, e.rules)
		}
		if j.judge != nil && !e.cfg.Anchors.TransparencyLog {
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
