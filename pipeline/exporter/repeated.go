package exporter

import (
	"context"
	"errors"
	"slices"

	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// dropRepeated takes out of a part what was published again long after it was
// sealed: the broker stored it a second time, the tables did not, so its row
// bears the sequence of an earlier part. A row's word is not enough to leave a
// trace out of a bundle: stream TRACES itself must hold these bytes there.
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

// holds tells whether the stream has the row's bytes under the row's sequence.
func (e *exporter) holds(ctx context.Context, row *store.StoredTrace) (bool, error) {
	data, err := e.broker.Trace(ctx, row.Sequence)
	if errors.Is(err, stream.ErrNotFound) {
		return false, nil
	}
	return err == nil && schema.DigestOf(data) == row.Digest, err
}
