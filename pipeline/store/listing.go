package store

import (
	"context"
	"fmt"

	"github.com/plumbline/plumbline/schema"
)

// TraceDigests returns the digest of every visible trace. A record's bytes contain its agent and
// its id, so the digest alone identifies it.
func (s *Store) TraceDigests(ctx context.Context) ([]schema.Digest, error) {
	var digests []schema.Digest
	type row struct {
		Digest schema.Digest `ch:"digest"`
	}
	for r, err := range eachRow[row](ctx, s, queryTraceDigests) {
		if err != nil {
			return nil, fmt.Errorf("read the digests of traces: %w", err)
		}
		digests = append(digests, r.Digest)
	}
	return digests, nil
}

// DeadLetters returns every dead letter, in order of receipt.
func (s *Store) DeadLetters(ctx context.Context) ([]DeadLetter, error) {
	letters, err := readRows[DeadLetter](ctx, s, queryDeadLetters)
	if err != nil {
		return nil, fmt.Errorf("read dead letters: %w", err)
	}
	return letters, nil
}
