package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// The marks that an operator puts on a dead letter.
const (
	MarkDropped  = "dropped"  // it stays unchanged, and needs no further action
	MarkReplayed = "replayed" // its bytes were sent again, and accepted
)

// LetterMark records what an operator did about the dead letters with these bytes that were
// received before it.
type LetterMark struct {
	Digest schema.Digest `json:"digest"` // of the letter's bytes
	Mark   string        `json:"mark"`
	By     string        `json:"by"`
	At     time.Time     `json:"at"` // when the operator requested it
	Note   string        `json:"note,omitempty"`
}

// markSubject is next to the subjects of the stages that write dead letters.
const markSubject = deadLetterSubject + "marks"

// MarkDeadLetters returns when the marks are stored. It removes nothing.
func (c *Client) MarkDeadLetters(ctx context.Context, marks []LetterMark) error {
	entries := make([]entry, len(marks))
	for i, m := range marks {
		data, err := json.Marshal(m)
		if err != nil {
			return fmt.Errorf("encode a mark: %w", err)
		}
		entries[i] = entry{subject: markSubject, id: "mark." + schema.DigestOf(data).String(), data: data}
	}
	if err := c.publish(ctx, entries); err != nil {
		return fmt.Errorf("publish %d marks: %w", len(marks), err)
	}
	return nil
}

// IsLetterMark reports whether a message of stream DEADLETTER is a mark.
func IsLetterMark(m *Message) bool { return m.Subject == markSubject }

// ParseLetterMark decodes a mark.
func ParseLetterMark(m *Message) (LetterMark, error) {
	var mark LetterMark
	if err := json.Unmarshal(m.Data, &mark); err != nil {
		return mark, fmt.Errorf("read a mark: %w", err)
	}
	return mark, nil
}
