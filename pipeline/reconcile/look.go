package reconcile

import (
	"context"
	"slices"

	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// lookAtOnce is how many digests one query looks up.
const lookAtOnce = 1000

// look looks up by digest the rows and verdicts that were not at their message's place. A message
// with the same bytes as an earlier one has no row of its own, and its verdict may have the place
// of the other message.
func (t *traceCheck) look(ctx context.Context) error {
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
	return nil
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
			err = t.differ(m.difference(ColumnsChanged), "the row bears the sequence %d", row.Sequence)
		case t.expired(m.AgentID, m.Received):
			t.count().Expired++
		default:
			err = t.differ(m.difference(RowMissing), "the message is neither a row nor a dead letter")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// storedRows returns the rows with the given digests.
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
			if err := t.differ(m.difference(VerdictMissing), "the trace is stored and has no verdict"); err != nil {
				return err
			}
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
