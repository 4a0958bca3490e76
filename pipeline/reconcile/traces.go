package reconcile

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/walk"
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

// lookAtOnce is how many digests one query looks up.
const lookAtOnce = 1000

// checkTraces checks the traces. Every message that the verifier is done with is a row, byte
// for byte, or a dead letter. Each row has a verdict, a receipt and a message. Each trace that drift
// is done with has a drift point.
func (c *check) checkTraces(ctx context.Context) error {
	t := &traceCheck{check: c}
	t.rows = open(c, c.Store.AccountedTraces(ctx), func(r *store.AccountedTrace) place { return place{r.StreamCreated, r.Sequence} })
	defer t.rows.close()
	t.letters = open(c, c.Store.AccountedLetters(ctx), func(l *store.AccountedLetter) place { return place{sequence: l.OriginSequence} })
	defer t.letters.close()
	t.verdicts = open(c, c.Store.JudgedTraces(ctx), func(v *store.JudgedTrace) place { return place{v.StreamCreated, v.Sequence} })
	defer t.verdicts.close()
	t.points = &pointCheck{traceCheck: t}
	t.points.rows = open(c, c.Store.MeasuredTraces(ctx), func(p *store.MeasuredTrace) place { return place{p.StreamCreated, p.Sequence} })
	defer t.points.rows.close()
	t.receipts = &receiptCheck{traceCheck: t, waiting: map[uint64]expected{}, early: map[uint64]schema.Receipt{}}
	var end func()
	t.receipts.next, end = iter.Pull2(walk.Slices(ctx, c.Client, stream.ConsumerConfig{Stream: stream.Receipts}, c.horizon.receipts, 0))
	defer end()

	// The rows were queried before this state is read, so the stream holds all their messages
	// except those that retention removed.
	state, err := c.Client.StreamState(ctx, stream.Traces)
	if err != nil {
		return err
	}
	t.first = state.FirstSequence
	for messages, err := range walk.Slices(ctx, c.Client, stream.ConsumerConfig{Stream: stream.Traces}, state, 0) {
		if err != nil {
			return err
		}
		if c.count().Messages == 0 {
			t.first = messages[0].Sequence // retention may have removed messages since the state was read
		}
		for i := range messages {
			t.message(&messages[i])
		}
		if err := t.receipts.advance(ctx, messages[len(messages)-1].Sequence); err != nil {
			return err
		}
		if err := t.look(ctx, lookAtOnce); err != nil || c.failed != nil {
			return err
		}
	}
	t.rows.rest(t.unmatched)
	t.verdicts.rest(t.checkVerdictID)
	t.points.rows.rest(t.points.unmatched)
	if err := t.look(ctx, 1); err != nil || c.failed != nil {
		return err
	}
	t.points.checkWaiting()
	return t.receipts.finish(ctx)
}

func (t *traceCheck) message(m *stream.Message) {
	t.count().Messages++
	at := place{t.horizon.traces.Created, m.Sequence}
	rows, points := t.rows.take(at, t.unmatched), t.points.rows.take(at, t.points.unmatched)
	verdicts, letter := t.verdicts.take(at, t.checkVerdictID), t.letter(m)
	for _, v := range verdicts {
		t.checkVerdictID(v)
	}
	if refused := t.decoder.Admit(&t.trace, m.Agent, m.Data); refused != nil {
		t.refused(m, rows, letter, refused)
		for _, p := range points {
			t.points.foreign(p, "its message is not a valid trace (%v)", refused)
		}
		return
	}
	t.admitted(m, rows, letter, verdicts)
	t.points.admitted(m, points)
}

// letter returns the dead letter of a message, nil where there is none.
func (t *traceCheck) letter(m *stream.Message) *store.AccountedLetter {
	letters := t.letters.take(place{sequence: m.Sequence}, func(*store.AccountedLetter) {})
	if len(letters) == 0 {
		return nil
	}
	digest := schema.DigestOf(wire.Kept(m.Data))
	for _, l := range letters {
		if l.Digest != digest || l.Reason == "" { // for example of a message of an earlier stream
			continue
		}
		t.count().DeadLetters++
		if l.Actual != l.Digest {
			t.differ(Difference{Kind: DeadLetterChanged, AgentID: l.AgentID, TraceID: l.TraceID, Sequence: m.Sequence},
				"the stored bytes are %s, the message is %s", l.Actual, digest)
		}
		return l
	}
	return nil
}

// refused checks a message that is an invalid trace: it must be a dead letter, unless it requests
// the end of a session.
func (t *traceCheck) refused(m *stream.Message, rows []*store.AccountedTrace, letter *store.AccountedLetter, why error) {
	for _, row := range rows {
		t.differ(of(row).difference(RowForeign), "its message is not a valid trace (%v)", why)
	}
	_, requested := wire.EndOf(m.Agent, m.Data)
	switch {
	case letter != nil:
	case requested: // it has no dead letter
		t.count().Ends++
	case m.Sequence > t.horizon.floor || !t.horizon.deadLettersStored:
		t.count().UnderWay++
	default:
		t.differ(Difference{Kind: DeadLetterMissing, AgentID: m.Agent, Sequence: m.Sequence}, "the message is not a valid trace (%v), and has no dead letter", why)
	}
}

// admitted checks a message that is a valid trace.
func (t *traceCheck) admitted(m *stream.Message, rows []*store.AccountedTrace, letter *store.AccountedLetter, verdicts []*store.JudgedTrace) {
	about := t.about(m)
	stored := t.compareRows(m, &about, rows)
	if letter != nil {
		if stored {
			t.differ(about.difference(DeadLetterAndRow), "the trace has a row and a dead letter: %s", letter.Reason)
		}
		return
	}
	t.receipts.expect(&about, &t.trace)
	switch {
	case !stored:
		t.rowless = append(t.rowless, about)
		return
	case slices.ContainsFunc(verdicts, func(v *store.JudgedTrace) bool { return v.TraceDigest == about.Digest }):
		t.count().Verdicts++
	default:
		t.verdictless = append(t.verdictless, about)
	}
	t.count().Traces++
}

// about copies the values of the current message.
func (t *traceCheck) about(m *stream.Message) message {
	return message{
		AgentID: strings.Clone(t.trace.AgentID), SessionID: strings.Clone(schema.SessionID(&t.trace)), TraceID: strings.Clone(t.trace.TraceID),
		Sequence: m.Sequence, Digest: t.trace.Digest, Received: m.Received, Partition: m.Partition,
	}
}

// compareRows compares a message with the rows at its place. It reports whether a row belongs to
// the message, even if the row was changed: if no row has the message's digest, the first one is
// the message's changed row.
func (t *traceCheck) compareRows(m *stream.Message, about *message, rows []*store.AccountedTrace) (stored bool) {
	own := slices.IndexFunc(rows, func(row *store.AccountedTrace) bool { return row.Digest == about.Digest })
	if stored = own >= 0; stored {
		switch row := rows[own]; {
		case row.Actual != about.Digest:
			t.differ(about.difference(RowChanged), "the stored bytes are %s, the message is %s", row.Actual, about.Digest)
		case !seal.ColumnsAgree(&t.trace, &row.StoredTrace):
			t.differ(about.difference(ColumnsChanged), "the columns (agent %q, session %q, trace %q, card %q, %s) contradict the record",
				row.AgentID, row.SessionID, row.TraceID, row.CardID, row.EventTime.Format(time.RFC3339Nano))
		case !row.Received.Equal(m.Received) || int(row.Partition) != m.Partition:
			t.differ(about.difference(ColumnsChanged), "the row was received %s in partition %d, according to the broker %s in %d",
				row.Received.Format(time.RFC3339Nano), row.Partition, m.Received.Format(time.RFC3339Nano), m.Partition)
		}
	}
	for i, row := range rows {
		if i == own {
			continue
		}
		kind := RowForeign
		if !stored {
			kind, stored = RowChanged, true
		}
		t.differ(of(row).difference(kind), "a row of %s has this place, the message is trace %q of agent %q, %s",
			row.Digest, about.TraceID, about.AgentID, about.Digest)
	}
	return stored
}

// unmatched checks a row without a message in the stream.
func (t *traceCheck) unmatched(row *store.AccountedTrace) {
	switch {
	case !t.unstreamed(row.StreamCreated, row.Received, row.Sequence):
		t.differ(of(row).difference(RowForeign), "the stream has no such message: nobody published this row")
	case row.Actual != row.Digest:
		t.differ(of(row).difference(RowChanged), "the stored bytes are %s, they are stored as %s", row.Actual, row.Digest)
	default:
		t.count().Unstreamed++
	}
}

// unstreamed reports whether a row's message is from an earlier stream, or was removed from this
// one.
func (t *traceCheck) unstreamed(created, received time.Time, sequence uint64) bool {
	current := t.horizon.traces.Created
	return created.Before(current) && received.Before(current) || created.Equal(current) && sequence < t.first
}

// checkVerdictID checks that the database shows a verdict under the id that alerts about it have.
func (t *traceCheck) checkVerdictID(v *store.JudgedTrace) {
	if id := v.ID().String(); v.StoredID != id {
		t.differ(Difference{Kind: VerdictID, AgentID: v.AgentID, SessionID: v.SessionID, TraceID: v.TraceID, Sequence: v.Sequence},
			"column verdict_id is %.64q, the verdict's id is %s", v.StoredID, id)
	}
}

// of returns what a row states about its message.
func of(row *store.AccountedTrace) *message {
	return &message{AgentID: row.AgentID, SessionID: row.SessionID, TraceID: row.TraceID, Sequence: row.Sequence, Digest: row.Digest, Received: row.Received}
}

// look looks up by digest what was not at its message's place, once there are enough messages. A
// message with the same bytes as an earlier one has no row and no point of its own, and its
// verdict may have the place of the other message.
func (t *traceCheck) look(ctx context.Context, enough int) error {
	if len(t.rowless)+len(t.verdictless) >= enough {
		for messages := range slices.Chunk(t.rowless, lookAtOnce) {
			if err := t.lookForRows(ctx, messages); err != nil {
				return err
			}
		}
		for messages := range slices.Chunk(t.verdictless, lookAtOnce) {
			if err := t.lookForVerdicts(ctx, messages); err != nil {
				return err
			}
		}
		t.rowless, t.verdictless = nil, nil
	}
	if len(t.points.missing) < enough {
		return nil
	}
	return t.points.look(ctx)
}

func (t *traceCheck) lookForRows(ctx context.Context, messages []message) error {
	rows, err := t.storedRows(ctx, digestsOf(messages))
	if err != nil {
		return err
	}
	for i := range messages {
		m := &messages[i]
		row := rows[m.Digest]
		switch {
		case row != nil && row.Sequence < m.Sequence:
			t.count().Copies++
		case m.Sequence > t.horizon.floor:
			t.count().UnderWay++
		case row != nil: // no message with these bytes has the row's place, so the difference is reported there
			t.differ(m.difference(ColumnsChanged), "the row has the sequence %d", row.Sequence)
		case t.expired(m.AgentID, m.Received):
			t.count().Expired++
		default:
			t.differ(m.difference(RowMissing), "the message has neither a row nor a dead letter")
		}
	}
	return nil
}

func (c *check) storedRows(ctx context.Context, digests []schema.Digest) (map[schema.Digest]*store.AccountedTrace, error) {
	found, err := c.Store.TracesByDigest(ctx, digests)
	rows := make(map[schema.Digest]*store.AccountedTrace, len(found))
	for i := range found {
		rows[found[i].Digest] = &found[i]
	}
	return rows, err
}

func (t *traceCheck) lookForVerdicts(ctx context.Context, messages []message) error {
	judged, err := t.Store.JudgedDigests(ctx, digestsOf(messages))
	if err != nil {
		return err
	}
	for i := range messages {
		m := &messages[i]
		switch {
		case judged[m.Digest]:
			t.count().Verdicts++
		case m.Sequence > t.horizon.floor:
			t.count().UnderWay++
		case t.expired(m.AgentID, m.Received):
			t.count().Expired++
		default:
			t.differ(m.difference(VerdictMissing), "the trace is stored and has no verdict")
		}
	}
	return nil
}

func digestsOf(messages []message) []schema.Digest {
	digests := make([]schema.Digest, len(messages))
	for i := range messages {
		digests[i] = messages[i].Digest
	}
	return digests
}
