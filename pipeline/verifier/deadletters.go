package verifier

import (
	"context"

	"github.com/plumbline/plumbline/pipeline/run"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// LetterRows is where dead letters become rows (store.Store).
type LetterRows interface {
	InsertDeadLetters(ctx context.Context, letters []store.DeadLetter) error
	InsertLetterMarks(ctx context.Context, marks []store.LetterMark) error
}

// deadLetters carries stream DEADLETTER into ClickHouse, so that analysts find
// what was refused beside what was stored.
type deadLetters struct {
	env  *run.Env
	rows LetterRows
}

func (d *deadLetters) carrier(source Source) *carrier {
	return &carrier{env: d.env, what: "dead letters", source: source, store: d.store}
}

func (d *deadLetters) store(ctx context.Context, inbox []stream.Message) error {
	letters := make([]store.DeadLetter, 0, len(inbox))
	var marks []store.LetterMark
	for i := range inbox {
		if stream.IsLetterMark(&inbox[i]) {
			mark, err := stream.ParseLetterMark(&inbox[i])
			if err != nil {
				d.passOver(&inbox[i], err)
				continue
			}
			marks = append(marks, store.LetterMark{Digest: mark.Digest, MarkedAt: inbox[i].Received, Mark: mark.Mark, MarkedBy: mark.By, Note: mark.Note})
			continue
		}
		letter, err := stream.ParseDeadLetter(&inbox[i])
		if err != nil {
			d.passOver(&inbox[i], err)
			continue
		}
		letters = append(letters, letterRow(&inbox[i], &letter))
	}
	err := d.env.Retry.Do(ctx, "insert dead letters", func() error { return d.rows.InsertDeadLetters(ctx, letters) })
	if err != nil || len(marks) == 0 {
		return err
	}
	return d.env.Retry.Do(ctx, "insert marks on dead letters", func() error { return d.rows.InsertLetterMarks(ctx, marks) })
}

func (d *deadLetters) passOver(m *stream.Message, err error) {
	d.env.Log.Error("a message of the dead letters is not one, passed over", "sequence", m.Sequence, "error", err)
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
