package store

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/schema"
)

// DeadLetter is a record that can never succeed: its bytes, and the reason.
type DeadLetter struct {
	Owned
	EventHour      uint32        `ch:"event_hour"` // filled in by the store
	Stage          string        `ch:"stage"`
	OriginCreated  time.Time     `ch:"origin_created"` // creation time of the stream; zero: none took it
	OriginSequence uint64        `ch:"origin_sequence"`
	Digest         schema.Digest `ch:"digest"` // filled in by the store
	Received       time.Time     `ch:"received_at"`
	RetainUntil    RetainUntil   `ch:"retain_until"`
	Subject        string        `ch:"subject"`
	AgentID        string        `ch:"agent_id"` // from the subject or the credential
	TraceID        string        `ch:"trace_id"` // empty if it could not be read
	Reason         string        `ch:"reason"`
	Pointers       []string      `ch:"faults.pointer"`
	Messages       []string      `ch:"faults.message"`
	Raw            []byte        `ch:"raw"`
}

func (d *DeadLetter) SetFaults(faults []schema.Fault) {
	d.Pointers, d.Messages = nil, nil
	for _, f := range faults {
		d.Pointers = append(d.Pointers, f.Pointer)
		d.Messages = append(d.Messages, f.Message)
	}
}

func (w Writer) InsertDeadLetters(ctx context.Context, letters []DeadLetter) error {
	for i := range letters {
		letters[i].EventHour = eventHour(letters[i].Received)
		letters[i].Digest = schema.DigestOf(letters[i].Raw)
	}
	return insertRows(ctx, w, "dead_letters", letters)
}

// DeadLetters returns every dead letter, in order of receipt.
func (r Reader) DeadLetters(ctx context.Context) ([]DeadLetter, error) {
	return read[DeadLetter](ctx, r.db, "dead letters", queryDeadLetters)
}

// LetterMark records what an operator did about the letters with these bytes that were received
// before it.
type LetterMark struct {
	Owned
	Digest   schema.Digest `ch:"digest"`
	MarkedAt time.Time     `ch:"marked_at"`
	Mark     string        `ch:"mark"` // a mark of package wire: "resolved", "replayed", or "dropped" of earlier versions
	MarkedBy string        `ch:"marked_by"`
	Note     string        `ch:"note"`
}

func (w Writer) InsertLetterMarks(ctx context.Context, marks []LetterMark) error {
	return insertRows(ctx, w, "dead_letter_marks", marks)
}

// MarkedLetter is a dead letter with the newest mark on its bytes.
type MarkedLetter struct {
	DeadLetter
	Mark     string    `ch:"mark"` // empty: none
	MarkedAt time.Time `ch:"marked_at"`
	MarkedBy string    `ch:"marked_by"`
	Note     string    `ch:"note"`
}

// Handled reports whether the mark covers this letter. A mark that is older than the letter
// belongs to an earlier letter with the same bytes.
func (m *MarkedLetter) Handled() bool { return m.Mark != "" && !m.MarkedAt.Before(m.Received) }

// MarkedLetters returns the letters whose digest begins with these hexadecimal digits, in order
// of receipt. raw chooses whether their bytes are included.
func (r Reader) MarkedLetters(ctx context.Context, digest string, raw bool) ([]MarkedLetter, error) {
	return read[MarkedLetter](ctx, r.db, "dead letters", queryMarkedLetters, clickhouse.Named("digest", digest), clickhouse.Named("raw", raw))
}

// OpenLetters returns the number of dead letters that no mark covers.
func (r Reader) OpenLetters(ctx context.Context) (uint64, error) {
	type row struct {
		Letters uint64 `ch:"letters"`
	}
	rows, err := read[row](ctx, r.db, "the number of open dead letters", queryOpenLetters)
	if err != nil {
		return 0, err
	}
	return rows[0].Letters, nil
}
