package store

import (
	"context"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// DeadLetter is a record that can never succeed: its bytes, and why.
type DeadLetter struct {
	Owned
	EventHour      uint32        `ch:"event_hour"` // filled in by the store
	Stage          string        `ch:"stage"`
	OriginCreated  time.Time     `ch:"origin_created"` // which stream OriginSequence counts in; zero: no stream took it
	OriginSequence uint64        `ch:"origin_sequence"`
	Digest         schema.Digest `ch:"digest"` // filled in by the store
	Received       time.Time     `ch:"received_at"`
	RetainUntil    RetainUntil   `ch:"retain_until"`
	Subject        string        `ch:"subject"`
	AgentID        string        `ch:"agent_id"` // of subject or credential
	TraceID        string        `ch:"trace_id"` // empty where it could not be read
	Reason         string        `ch:"reason"`
	Pointers       []string      `ch:"faults.pointer"`
	Messages       []string      `ch:"faults.message"`
	Raw            []byte        `ch:"raw"`
}

// SetFaults fills in every fault found.
func (d *DeadLetter) SetFaults(faults []schema.Fault) {
	d.Pointers, d.Messages = nil, nil
	for _, f := range faults {
		d.Pointers = append(d.Pointers, f.Pointer)
		d.Messages = append(d.Messages, f.Message)
	}
}

// InsertDeadLetters stores dead letters. The same one again vanishes.
func (s *Store) InsertDeadLetters(ctx context.Context, letters []DeadLetter) error {
	for i := range letters {
		letters[i].EventHour = EventHour(letters[i].Received)
		letters[i].Digest = schema.DigestOf(letters[i].Raw)
	}
	return insertRows(ctx, s, "dead_letters", letters)
}
