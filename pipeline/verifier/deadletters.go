package verifier

import (
	"context"
	"time"

	"github.com/plumbline/plumbline/pipeline/run"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// LetterRows is where dead letters become rows (store.Store).
type LetterRows interface {
	InsertDeadLetters(ctx context.Context, letters []store.DeadLetter) error
}

// deadLetters carries stream DEADLETTER into ClickHouse, so that analysts find
// what was refused beside what was stored. Inserts are idempotent.
type deadLetters struct {
	env    *run.Env
	source Source
	rows   LetterRows
}

// Dead letters are rare: small batches, and no hurry.
const (
	letterRows  = 1000
	letterBytes = 16 << 20
	letterWait  = 500 * time.Millisecond
)

func (d *deadLetters) run(ctx context.Context) error {
	work, stop := d.env.Drain(ctx)
	defer stop()
	var inbox []stream.Message
	for ctx.Err() == nil {
		err := d.env.Retry.Do(ctx, "fetch dead letters", func() (err error) {
			inbox, err = d.source.Fetch(ctx, inbox[:0], letterRows, letterBytes, letterWait)
			if len(inbox) > 0 {
				return nil
			}
			return err
		})
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err := d.carry(work, inbox); err != nil {
			return err
		}
	}
	return nil
}

// carry stores the letters and acknowledges them.
func (d *deadLetters) carry(ctx context.Context, inbox []stream.Message) error {
	if len(inbox) == 0 {
		return nil
	}
	letters := make([]store.DeadLetter, 0, len(inbox))
	for i := range inbox {
		letter, err := stream.ParseDeadLetter(&inbox[i])
		if err != nil {
			d.env.Log.Error("a message of the dead letters is not one, passed over", "sequence", inbox[i].Sequence, "error", err)
			continue
		}
		letters = append(letters, letterRow(&inbox[i], &letter))
	}
	err := d.env.Retry.Do(ctx, "insert dead letters", func() error { return d.rows.InsertDeadLetters(ctx, letters) })
	if err != nil {
		return err
	}
	return d.env.Retry.Do(ctx, "acknowledge dead letters", func() error { return stream.Acknowledge(ctx, inbox) })
}

func letterRow(m *stream.Message, letter *stream.DeadLetter) store.DeadLetter {
	row := store.DeadLetter{
		Stage:          letter.Stage,
		OriginSequence: letter.Sequence,
		Received:       m.Received,
		Subject:        letter.Subject,
		AgentID:        letter.Agent,
		Reason:         letter.Reason,
		Raw:            letter.Data,
	}
	row.SetFaults(letter.Faults)
	return row
}
