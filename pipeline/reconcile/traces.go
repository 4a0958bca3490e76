package reconcile

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// traceCheck compares stream TRACES with the rows made from it. It reads all sides in the
// stream's order.
type traceCheck struct {
	*check
	first    uint64 // first message that the stream holds
	rows     *cursor[store.AccountedTrace]
	letters  *cursor[store.AccountedLetter]
	verdicts *cursor[store.JudgedTrace]
	points   *pointCheck
	receipts *receiptCheck

	decoder schema.Decoder
	trace   schema.Trace // the trace of the current message

	rowless, verdictless []message // to be looked up by digest
}

// message holds the values of a stream message that the check needs.
type message struct {
	AgentID, SessionID, TraceID string
	Sequence                    uint64
	Digest                      schema.Digest
	Received                    time.Time
	Partition                   int
}

func (m *message) difference(kind Kind) Difference {
	return Difference{Kind: kind, AgentID: m.AgentID, SessionID: m.SessionID, TraceID: m.TraceID, Sequence: m.Sequence}
}

// checkTraces checks the traces. Every message that the verifier has acked is a row, byte for
// byte, or a dead letter. Each row has a verdict, a receipt and a message. Each trace that drift
// has acked has a drift point.
func (c *check) checkTraces(ctx context.Context) (err error) {
	t := &traceCheck{check: c}
	defer t.close()
	if err := t.open(ctx); err != nil {
		return err
	}
	// The rows were queried before this state is read, so the stream holds all their messages
	// except those that retention removed.
	state, err := c.Client.StreamState(ctx, stream.Traces)
	if err != nil {
		return err
	}
	t.first = state.FirstSequence
	source, err := openReader(ctx, c.Client, stream.Traces, state)
	if err != nil {
		return err
	}
	defer source.close()
	if err := t.readAll(ctx, source); err != nil {
		return err
	}
	if err := t.rows.rest(t.unmatched); err != nil {
		return err
	}
	if err := t.verdicts.rest(t.checkVerdictID); err != nil {
		return err
	}
	if err := t.look(ctx); err != nil {
		return err
	}
	if err := t.points.finish(ctx); err != nil {
		return err
	}
	return t.receipts.finish(ctx)
}

func (t *traceCheck) open(ctx context.Context) (err error) {
	if t.rows, err = open(t.Store.AccountedTraces(ctx), func(r *store.AccountedTrace) place { return place{r.StreamCreated, r.Sequence} }); err != nil {
		return err
	}
	if t.letters, err = open(t.Store.AccountedLetters(ctx), func(l *store.AccountedLetter) place { return place{sequence: l.OriginSequence} }); err != nil {
		return err
	}
	if t.verdicts, err = open(t.Store.JudgedTraces(ctx), func(v *store.JudgedTrace) place { return place{v.StreamCreated, v.Sequence} }); err != nil {
		return err
	}
	if t.points, err = t.openPoints(ctx); err != nil {
		return err
	}
	t.receipts, err = t.openReceipts(ctx)
	return err
}

func (t *traceCheck) close() {
	if t.rows != nil {
		t.rows.close()
	}
	if t.letters != nil {
		t.letters.close()
	}
	if t.verdicts != nil {
		t.verdicts.close()
	}
	if t.points != nil {
		t.points.rows.close()
	}
	if t.receipts != nil {
		t.receipts.source.close()
	}
}

func (t *traceCheck) readAll(ctx context.Context, source *reader) error {
	for {
		messages, err := source.next(ctx)
		if err != nil || len(messages) == 0 {
			return err
		}
		if t.count().Messages == 0 {
			t.first = messages[0].Sequence // retention may have removed messages since the state was read
		}
		for i := range messages {
			if err := t.message(&messages[i]); err != nil {
				return err
			}
		}
		if err := t.receipts.advance(ctx, source.read); err != nil {
			return err
		}
		if len(t.rowless)+len(t.verdictless) >= lookAtOnce {
			if err := t.look(ctx); err != nil {
				return err
			}
		}
		if len(t.points.missing) >= lookAtOnce {
			if err := t.points.look(ctx); err != nil {
				return err
			}
		}
	}
}

// message compares one message.
func (t *traceCheck) message(m *stream.Message) error {
	t.count().Messages++
	at := place{t.horizon.created, m.Sequence}
	if err := t.rows.before(at, t.unmatched); err != nil {
		return err
	}
	rows, err := t.rows.take(at)
	if err != nil {
		return err
	}
	judged, err := t.judged(at)
	if err != nil {
		return err
	}
	letter, err := t.letter(m)
	if err != nil {
		return err
	}
	points, err := t.points.at(at)
	if err != nil {
		return err
	}
	if refused := t.decoder.Admit(&t.trace, m.Agent, m.Data); refused != nil {
		return errors.Join(t.refused(m, rows, letter, refused), t.points.refused(points, refused))
	}
	return errors.Join(t.admitted(m, rows, letter, judged), t.points.admitted(m, points))
}

// judged returns the digests that have a verdict at a place.
func (t *traceCheck) judged(at place) (map[schema.Digest]bool, error) {
	if err := t.verdicts.before(at, t.checkVerdictID); err != nil {
		return nil, err
	}
	verdicts, err := t.verdicts.take(at)
	if err != nil {
		return nil, err
	}
	digests := make(map[schema.Digest]bool, 1)
	for _, v := range verdicts {
		digests[v.TraceDigest] = true
		if err := t.checkVerdictID(v); err != nil {
			return nil, err
		}
	}
	return digests, nil
}

// letter returns the dead letter of a message, nil where there is none.
func (t *traceCheck) letter(m *stream.Message) (*store.AccountedLetter, error) {
	at := place{sequence: m.Sequence}
	if err := t.letters.before(at, func(*store.AccountedLetter) error { return nil }); err != nil {
		return nil, err
	}
	letters, err := t.letters.take(at)
	if err != nil || len(letters) == 0 {
		return nil, err
	}
	digest := schema.DigestOf(wire.Kept(m.Data))
	for _, l := range letters {
		if l.Digest != digest || l.Reason == "" { // for example of a message of an earlier stream
			continue
		}
		t.count().DeadLetters++
		if l.Actual != l.Digest {
			return l, t.differ(Difference{Kind: LetterChanged, AgentID: l.AgentID, TraceID: l.TraceID, Sequence: m.Sequence},
				"the stored bytes are %s, the message is %s", l.Actual, digest)
		}
		return l, nil
	}
	return nil, nil
}

// refused checks a message that is an invalid trace: it must be a dead letter.
func (t *traceCheck) refused(m *stream.Message, rows []*store.AccountedTrace, letter *store.AccountedLetter, why error) error {
	for _, row := range rows {
		if err := t.differ(of(row).difference(RowForeign), "its message is no valid trace (%v)", why); err != nil {
			return err
		}
	}
	switch {
	case letter != nil:
	case m.Sequence > t.horizon.floor || !t.horizon.lettered:
		t.count().UnderWay++
	default:
		return t.differ(Difference{Kind: LetterMissing, AgentID: m.Agent, Sequence: m.Sequence}, "the message is no valid trace (%v), and no dead letter", why)
	}
	return nil
}

// admitted checks a message that is a valid trace.
func (t *traceCheck) admitted(m *stream.Message, rows []*store.AccountedTrace, letter *store.AccountedLetter, judged map[schema.Digest]bool) error {
	about := t.about(m)
	stored, err := t.compareRows(m, &about, rows)
	if err != nil {
		return err
	}
	if letter != nil {
		if stored {
			return t.differ(about.difference(LetterAndRow), "the trace is stored, and a dead letter: %s", letter.Reason)
		}
		return nil
	}
	if err := t.receipts.expect(&about, &t.trace); err != nil {
		return err
	}
	switch {
	case !stored:
		t.rowless = append(t.rowless, about)
		return nil
	case judged[about.Digest]:
		t.count().Verdicts++
	default:
		t.verdictless = append(t.verdictless, about)
	}
	t.count().Traces++
	return nil
}

// about copies the values of the current message.
func (t *traceCheck) about(m *stream.Message) message {
	return message{
		AgentID: strings.Clone(t.trace.AgentID), SessionID: strings.Clone(schema.SessionID(&t.trace)), TraceID: strings.Clone(t.trace.TraceID),
		Sequence: m.Sequence, Digest: t.trace.Digest, Received: m.Received, Partition: m.Partition,
	}
}

// compareRows compares a message with the rows at its place. It reports whether a row belongs to
// the message, even if the row was changed.
func (t *traceCheck) compareRows(m *stream.Message, about *message, rows []*store.AccountedTrace) (stored bool, err error) {
	for _, row := range rows {
		if stored || row.Digest != about.Digest {
			continue
		}
		stored = true
		switch {
		case row.Actual != about.Digest:
			err = t.differ(about.difference(RowChanged), "the stored bytes are %s, the message is %s", row.Actual, about.Digest)
		case !seal.ColumnsAgree(&t.trace, &row.StoredTrace):
			err = t.differ(about.difference(ColumnsChanged), "the columns (agent %q, session %q, trace %q, card %q, %s) do not say what the record says",
				row.AgentID, row.SessionID, row.TraceID, row.CardID, row.EventTime.Format(time.RFC3339Nano))
		case !row.Received.Equal(m.Received) || int(row.Partition) != m.Partition:
			err = t.differ(about.difference(ColumnsChanged), "the row says received %s in partition %d, the broker %s in %d",
				row.Received.Format(time.RFC3339Nano), row.Partition, m.Received.Format(time.RFC3339Nano), m.Partition)
		}
		if err != nil {
			return stored, err
		}
	}
	return t.compareOthers(about, rows, stored)
}

// compareOthers reports the rows at a place that do not have the message's digest. If no row has
// it, the first is reported as the message's changed row.
func (t *traceCheck) compareOthers(about *message, rows []*store.AccountedTrace, stored bool) (bool, error) {
	met := false
	for _, row := range rows {
		if row.Digest == about.Digest && !met {
			met = true
			continue
		}
		kind := RowForeign
		if !stored {
			kind, stored = RowChanged, true
		}
		if err := t.differ(of(row).difference(kind), "a row of %s has this place, the message is trace %q of agent %q, %s",
			row.Digest, about.TraceID, about.AgentID, about.Digest); err != nil {
			return stored, err
		}
	}
	return stored, nil
}

// unmatched checks a row without a message in the stream.
func (t *traceCheck) unmatched(row *store.AccountedTrace) error {
	created := t.horizon.created
	earlier := row.StreamCreated.Before(created) && row.Received.Before(created)
	beyond := row.StreamCreated.Equal(created) && row.Sequence < t.first
	switch {
	case !earlier && !beyond:
		return t.differ(of(row).difference(RowForeign), "the stream has no such message: nobody published this row")
	case row.Actual != row.Digest:
		return t.differ(of(row).difference(RowChanged), "the stored bytes are %s, they are stored as %s", row.Actual, row.Digest)
	}
	t.count().Unstreamed++
	return nil
}

// of returns what a row states about its message.
func of(row *store.AccountedTrace) *message {
	return &message{AgentID: row.AgentID, SessionID: row.SessionID, TraceID: row.TraceID, Sequence: row.Sequence, Digest: row.Digest, Received: row.Received}
}
