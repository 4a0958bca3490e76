package messages

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/plumbline/plumbline/pipeline/stream"
)

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
