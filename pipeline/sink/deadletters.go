package sink

import (
	"context"

	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
)

// LetterRows is where dead letters become rows (store.Store).
type LetterRows interface {
	InsertDeadLetters(ctx context.Context, letters []store.DeadLetter) error
	InsertLetterMarks(ctx context.Context, marks []store.LetterMark) error
}

// DeadLetters brings stream DEADLETTER into ClickHouse: analysts find there what was refused.
// It passes over a message that is neither a dead letter nor a mark on one.
type DeadLetters struct {
	Env  *service.Env
	Rows LetterRows
}

// Run stores what source brings until ctx ends.
func (d *DeadLetters) Run(ctx context.Context, source Source) error {
	l := loop{env: d.Env, what: "dead letters", source: source, store: d.store, rows: usualRows, wait: usualWait}
	return l.run(ctx)
}

func (d *DeadLetters) store(ctx context.Context, inbox []stream.Message) error {
	letters := make([]store.DeadLetter, 0, len(inbox))
	var marks []store.LetterMark
	for i := range inbox {
		if inbox[i].Subject == wire.MarkSubject {
			mark, err := wire.ParseMark(inbox[i].Data)
			if err != nil {
				d.passOver(&inbox[i], err)
				continue
			}
			marks = append(marks, store.LetterMark{Digest: mark.Digest, MarkedAt: inbox[i].Received, Mark: mark.Mark, MarkedBy: mark.By, Note: mark.Note})
			continue
		}
		letter, err := wire.ParseDeadLetter(inbox[i].Subject, inbox[i].Header, inbox[i].Data)
		if err != nil {
			d.passOver(&inbox[i], err)
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

func (d *DeadLetters) passOver(m *stream.Message, err error) {
	d.Env.Log.Error("a message of stream DEADLETTER is no dead letter: it is passed over", "sequence", m.Sequence, "error", err)
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
