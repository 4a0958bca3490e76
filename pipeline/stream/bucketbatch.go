package stream

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/plumbline/plumbline/pipeline/subject"
)

// Write is one write of a key that must still have the revision Last. 0 means that the key was
// never written.
type Write struct {
	Key   string
	Value []byte
	Last  uint64
}

// WriteAll writes different keys, each with its own compare-and-swap, and returns their
// revisions. If the bucket accepts atomic batches, this costs few round trips and disk syncs,
// otherwise the writes are pipelined. If a key has another revision, the error is ErrConflict.
// After any error some of the writes may have happened: read before you try again.
func (b *Bucket) WriteAll(ctx context.Context, writes []Write) (revisions []uint64, err error) {
	ctx, cancel := b.client.within(ctx, b.client.cfg.Timeout)
	defer cancel()
	entries := make([]entry, len(writes))
	for i, w := range writes {
		if len(w.Key) > subject.MaxBytes {
			return nil, b.tooLong("write", w.Key)
		}
		entries[i] = entry{
			subject: "$KV." + b.name + "." + w.Key, data: w.Value,
			// For this attempt only: what the client itself repeats is stored once.
			id:     nuid.Next(),
			header: nats.Header{jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(w.Last, 10)}},
		}
	}
	if err := b.client.publish(ctx, entries); err != nil {
		return nil, fmt.Errorf("write %d keys of bucket %s: %w", len(writes), b.name, b.kind(err))
	}
	revisions = make([]uint64, len(entries))
	for i := range entries {
		revisions[i] = entries[i].outcome.Sequence
	}
	return revisions, nil
}

// allowBatches makes the stream behind a new bucket accept atomic batches. The configuration of a
// bucket has no setting for that. With a server that does not support them, keys are written one
// by one.
func (c *Client) allowBatches(ctx context.Context, bucket string) error {
	stream, err := c.js.Stream(ctx, "KV_"+bucket)
	if err != nil {
		return err
	}
	cfg := stream.CachedInfo().Config
	cfg.AllowAtomicPublish = true
	var refused *jetstream.APIError
	if _, err = c.js.UpdateStream(ctx, cfg); errors.As(err, &refused) && refused.Code == 400 {
		c.cfg.Logger.Debug("the bucket takes no atomic batches", "bucket", bucket, "error", err)
		return nil
	}
	return err
}
