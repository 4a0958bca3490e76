package messages

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/plumbline/plumbline/message"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// Bucket is bucket messages (stream.Messages). Its records are created once and never changed.
type Bucket interface {
	Create(ctx context.Context, key string, value []byte) (revision uint64, err error)
	Update(ctx context.Context, key string, value []byte, last uint64) (revision uint64, err error)
	GetNewest(ctx context.Context, key string) (value []byte, revision uint64, err error)
}

// Records are the records in the bucket. Any goroutine may use them.
type Records struct{ bucket Bucket }

// NewRecords returns the records in a bucket.
func NewRecords(bucket Bucket) *Records { return &Records{bucket} }

// The keys of the bucket: five kinds of records, and two kinds of notes, which are not records.
// The acceptance of a message is created once, under the message's id, and kept. That is the
// replay check, so nonces need no entries of their own.
func messageKey(id string) string           { return "message." + id }
func acceptanceKey(messageID string) string { return "accepted." + messageID }
func refusalKey(id string) string           { return "refusal." + id }
func callKey(id string) string              { return "call." + id }
func resultKey(agentID, sessionID string, seq uint64) string {
	return "result." + sessionToken(agentID, sessionID) + "." + strconv.FormatUint(seq, 10)
}
func approvalKey(id string) string { return "approval." + id } // note: the message that approves that one
func numberKey(agentID, sessionID string) string { // note: the number of the session's latest tool result
	return "seq." + sessionToken(agentID, sessionID)
}

// IsRecord reports whether a key belongs to a record and not to a note.
func IsRecord(key string) bool {
	return !strings.HasPrefix(key, "approval.") && !strings.HasPrefix(key, "seq.")
}

// sessionToken returns a key for a session of any ids, whatever their bytes and lengths.
func sessionToken(agentID, sessionID string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(agentID), agentID, sessionID))
	return hex.EncodeToString(sum[:])
}

// Message returns the record of a message, or nil if no message was signed or refused under the
// id.
func (r *Records) Message(ctx context.Context, id string) (*message.Record, error) {
	return r.byID(ctx, messageKey, id)
}

// Call returns the record of a tool call, or nil if there is none.
func (r *Records) Call(ctx context.Context, id string) (*message.Record, error) {
	return r.byID(ctx, callKey, id)
}

// byID looks up an id of this package's form. Other ids cannot exist.
func (r *Records) byID(ctx context.Context, key func(string) string, id string) (*message.Record, error) {
	if !ours(id) {
		return nil, nil
	}
	return r.read(ctx, key(id))
}

// ours reports whether an id has the form of the ids that this package creates.
func ours(id string) bool {
	parsed, err := uuid.Parse(id)
	return err == nil && parsed.String() == id
}

// Acceptance returns the record of the acceptance of the record's message, or nil if the message
// has not been accepted.
func (r *Records) Acceptance(ctx context.Context, m *message.Record) (*message.Record, error) {
	if m.Nonce == "" { // the message was refused
		return nil, nil
	}
	// An acceptance under a nonce may be moved between the first two lookups.
	for _, key := range []string{acceptanceKey(m.MessageID), nonceKey(m.Nonce), acceptanceKey(m.MessageID)} {
		if accepted, err := r.read(ctx, key); accepted != nil || err != nil {
			return accepted, err
		}
	}
	return nil, nil
}

// Result returns the record of a session's tool result, or nil if there is none.
func (r *Records) Result(ctx context.Context, agentID, sessionID string, seq uint64) (*message.Record, error) {
	return r.read(ctx, resultKey(agentID, sessionID, seq))
}

// Approval returns the record of the message by which a person approved another one, or nil if
// there is none.
func (r *Records) Approval(ctx context.Context, messageID string) (*message.Record, error) {
	return r.byID(ctx, approvalKey, messageID)
}

func (r *Records) read(ctx context.Context, key string) (*message.Record, error) {
	value, _, err := r.bucket.GetNewest(ctx, key)
	if errors.Is(err, stream.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if record, err := ReadRecord(value); err == nil {
		return record, nil
	}
	return nil, nil // it is not a record, and no decision may use it; the sink of the bucket's records logs it
}

// ReadRecord decodes a value of the bucket.
func ReadRecord(value []byte) (*message.Record, error) {
	record := new(message.Record)
	if err := json.Unmarshal(value, record); err != nil {
		return nil, fmt.Errorf("read the record of a message: %w", err)
	}
	return record, nil
}

// make creates a record, once. It returns stream.ErrConflict if another record has the key. After
// an attempt with an unknown outcome it looks the record up.
func (r *Records) make(ctx context.Context, key string, record *message.Record) error {
	value, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("write the record of a message: %w", err)
	}
	_, err = r.bucket.Create(ctx, key, value)
	if err == nil {
		return nil
	}
	if stored, _, unread := r.bucket.GetNewest(ctx, key); unread == nil && bytes.Equal(stored, value) {
		return nil
	}
	return err
}

// attempts limits how often a number is requested that others take at the same time.
const attempts = 100

// nextNumber takes the next number of a session's tool results, from 1. Numbers may be skipped.
// None is given twice.
func (r *Records) nextNumber(ctx context.Context, agentID, sessionID string) (uint64, error) {
	key := numberKey(agentID, sessionID)
	for range attempts {
		number, err := r.tryNumber(ctx, key)
		if !errors.Is(err, stream.ErrConflict) {
			return number, err
		}
	}
	return 0, fmt.Errorf("number a tool result: %w: too many requests at the same time", stream.ErrUnavailable)
}

func (r *Records) tryNumber(ctx context.Context, key string) (uint64, error) {
	value, revision, err := r.bucket.GetNewest(ctx, key)
	if errors.Is(err, stream.ErrNotFound) {
		_, err = r.bucket.Create(ctx, key, []byte("1"))
		return 1, err
	}
	if err != nil {
		return 0, err
	}
	last, err := strconv.ParseUint(string(value), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the last number of a session's tool results: %w", err)
	}
	_, err = r.bucket.Update(ctx, key, strconv.AppendUint(nil, last+1, 10), revision)
	return last + 1, err
}

// nonceKey returns the key under which an earlier version stored the acceptance of a message.
func nonceKey(nonce string) string { return "nonce." + nonce }

// MoveAcceptances moves the acceptances that an earlier version stored under nonces to their
// current keys, byte for byte. It moves an acceptance once its window is over, because then no
// process of that version can meet its nonce again. It returns how many are younger. Any number
// of processes may move concurrently.
func (s *Service) MoveAcceptances(ctx context.Context, bucket *stream.Bucket) (younger int, err error) {
	keys, err := bucket.Keys(ctx, nonceKey("*"))
	if err != nil {
		return 0, fmt.Errorf("list acceptances under nonces: %w", err)
	}
	for _, key := range keys {
		moved, err := s.moveAcceptance(ctx, bucket, key)
		if err != nil {
			return 0, fmt.Errorf("move an acceptance: %w", err)
		}
		if !moved {
			younger++
		}
	}
	return younger, nil
}

// moveAcceptance reports whether nothing is left to move under a key. A value that is not an
// acceptance stays: nobody reads it.
func (s *Service) moveAcceptance(ctx context.Context, bucket *stream.Bucket, key string) (moved bool, err error) {
	value, revision, err := bucket.GetNewest(ctx, key)
	if errors.Is(err, stream.ErrNotFound) { // another process moved it
		return true, nil
	}
	if err != nil {
		return false, err
	}
	record, err := ReadRecord(value)
	if err != nil || !ours(record.MessageID) {
		return true, nil
	}
	if s.Now().Sub(record.At) < 2*s.Window {
		return false, nil
	}
	to := acceptanceKey(record.MessageID)
	_, err = bucket.Create(ctx, to, value)
	if errors.Is(err, stream.ErrConflict) {
		stored, _, unread := bucket.GetNewest(ctx, to)
		if unread != nil || !bytes.Equal(stored, value) {
			return true, unread // another acceptance has the new key: leave this one
		}
		err = nil
	}
	if err != nil {
		return false, err
	}
	if err = bucket.Delete(ctx, key, revision); errors.Is(err, stream.ErrConflict) {
		err = nil // another process removed it
	}
	return true, err
}
