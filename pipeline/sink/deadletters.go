package sink

import (
	"context"

	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
)

// LetterRows stores dead letters and marks on them (store.Store).
type LetterRows interface {
	InsertDeadLetters(ctx context.Context, letters []store.DeadLetter) error
	InsertLetterMarks(ctx context.Context, marks []store.LetterMark) error
}

// DeadLetters brings stream DEADLETTER into ClickHouse, where analysts find what was refused. It
// skips a message that is neither a dead letter nor a mark on one.
type DeadLetters struct {
	Env  *service.Env
	Rows LetterRows
}

// Run stores the messages of source until ctx ends.
func (d *DeadLetters) Run(ctx context.Context, source Source) error {
	return run(ctx, d.Env, "dead letters", source, usual, d.store)
}

func (d *DeadLetters) store(ctx context.Context, inbox []stream.Message) error {
	letters := make([]store.DeadLetter, 0, len(inbox))
	var marks []store.LetterMark
	for i := range inbox {
		if inbox[i].Subject == wire.MarkSubject {
			mark, err := wire.ParseMark(inbox[i].Data)
			if err != nil {
				d.skip(&inbox[i], err)
				continue
			}
			marks = append(marks, store.LetterMark{Digest: mark.Digest, MarkedAt: inbox[i].Received, Mark: mark.Mark, MarkedBy: mark.By, Note: mark.Note})
			continue
		}
		letter, err := wire.ParseDeadLetter(inbox[i].Subject, inbox[i].Header, inbox[i].Data)
		if err != nil {
			d.skip(&inbox[i], err)
			continue
		}
		letters = append(letters, LetterRow(&inbox[i], &letter))
	}
	err := d.Env.Retry.Do(ctx, "insert dead letters", func() error { return d.Rows.InsertDeadLetters(ctx, letters) })
	if err != nil || len(marks) == 0 {
		return err
	}
	return d.Env.Retry.Do(ctx, "insert marks on dead letters", func() error { return d.Rows.InsertLetterMarks(ctx, marks) })
}

func (d *DeadLetters) skip(m *stream.Message, err error) {
	d.Env.Log.Error("message of stream DEADLETTER is not a dead letter; skipped", "sequence", m.Sequence, "error", err)
}

// LetterRow returns the row of a dead letter that came as m.
func LetterRow(m *stream.Message, letter *wire.DeadLetter) store.DeadLetter {
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
