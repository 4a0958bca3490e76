package deadletter

import (
	"context"
	"errors"

	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/pipeline/otel"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
)

// Ingest is what takes the bytes and the marks (client.Publisher).
type Ingest interface {
	PublishDocument(ctx context.Context, raw []byte) (client.Outcome, error)
	PublishSpan(ctx context.Context, raw []byte) (client.Outcome, error)
	MarkDeadLetters(ctx context.Context, mark, note string, digests []string) error
}

// Handled is what became of one letter.
type Handled struct {
	Digest string `json:"digest"`
	Mark   string `json:"mark,omitempty"` // empty: the letter stays open

	Outcome *client.Outcome `json:"outcome,omitempty"` // of a replay
	Message string          `json:"message,omitempty"` // why it was not replayed
}

// Replay publishes the original bytes of a letter again, a span of OpenTelemetry as a span. If they are accepted it
// marks the letter as replayed; otherwise the letter stays open. The error is a *client.Problem if ingest does not
// permit the marks.
func Replay(ctx context.Context, ingest Ingest, l *store.MarkedLetter, note string) (*Handled, error) {
	done := &Handled{Digest: l.Digest.String()}
	// A dead letter of ingest was never on a stream and has no subject.
	if _, _, err := subject.ParseStored(l.Subject); l.Subject != "" && err != nil {
		done.Message = "it is not a trace: it was sent on " + l.Subject
		return done, nil
	}
	if err := ingest.MarkDeadLetters(ctx, wire.MarkReplaying, note, []string{done.Digest}); err != nil {
		return nil, err
	}
	publish := ingest.PublishDocument
	if l.Reason == otel.ReasonUnmapped {
		publish = ingest.PublishSpan
	}
	outcome, err := publish(ctx, l.Raw)
	if refused, ok := errors.AsType[*client.Problem](err); ok {
		done.Message = refused.Error()
		return done, nil
	}
	if err != nil {
		return nil, err
	}
	done.Outcome = &outcome
	if outcome.Status == client.Accepted || outcome.Status == client.Duplicate {
		return done, done.mark(ctx, ingest, wire.MarkReplayed, note)
	}
	return done, nil
}

// Resolve marks a letter as one that needs no further action.
func Resolve(ctx context.Context, ingest Ingest, l *store.MarkedLetter, note string) (*Handled, error) {
	done := &Handled{Digest: l.Digest.String()}
	return done, done.mark(ctx, ingest, wire.MarkResolved, note)
}

func (h *Handled) mark(ctx context.Context, ingest Ingest, mark, note string) error {
	h.Mark = mark
	return ingest.MarkDeadLetters(ctx, mark, note, []string{h.Digest})
}
