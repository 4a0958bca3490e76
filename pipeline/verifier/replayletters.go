package verifier

import (
	"context"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// restoreLetters makes those dead letters of the messages from first on rows again
// that their stream has and the table has not. A message without a letter in
// either becomes one when it is judged.
func (w *replaying) restoreLetters(ctx context.Context, first *stream.Message) error {
	since := first.Received.Add(-clockSlack)
	source, err := w.Client.ReadThrough(ctx, stream.ConsumerConfig{Stream: stream.DeadLetters, Since: since}, w.letters.LastSequence, w.letters)
	if err != nil {
		return err
	}
	defer source.Close()
	for {
		inbox, err := source.Next(ctx, 0)
		if err != nil || len(inbox) == 0 {
			return err
		}
		missing, err := w.missingLetters(ctx, inbox, since, first.Sequence)
		if err != nil {
			return err
		}
		if err := w.Store.InsertDeadLetters(ctx, missing); err != nil {
			return err
		}
		w.summary.LettersWritten += len(missing)
	}
}

// missingLetters returns the letters, of messages to be judged, that are no rows.
func (w *replaying) missingLetters(ctx context.Context, inbox []stream.Message, since time.Time, from uint64) ([]store.DeadLetter, error) {
	var letters []store.DeadLetter
	var sequences []uint64
	for i := range inbox {
		if stream.IsLetterMark(&inbox[i]) {
			continue
		}
		letter, err := stream.ParseDeadLetter(&inbox[i])
		if err != nil { // the carrier passes over it, too
			w.Log.Error("a message of the dead letters is not one", "sequence", inbox[i].Sequence, "error", err)
			continue
		}
		if letter.Sequence >= from && letter.Sequence <= w.summary.Through {
			letters, sequences = append(letters, letterRow(&inbox[i], &letter)), append(sequences, letter.Sequence)
		}
	}
	if len(letters) == 0 {
		return nil, nil
	}
	kept, err := w.Store.KeptLetters(ctx, since, sequences)
	missing := letters[:0]
	for i := range letters {
		if !kept[store.LetterPlace{Sequence: letters[i].OriginSequence, Digest: schema.DigestOf(letters[i].Raw)}] {
			missing = append(missing, letters[i])
		}
	}
	return missing, err
}
