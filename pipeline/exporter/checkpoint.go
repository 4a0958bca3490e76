package exporter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/pipeline/stream"
)

// checkpoint is the state of the fold in bucket seals, under a key that no session has.
type checkpoint struct {
	StreamCreated time.Time `json:"stream_created"` // of RECEIPTS
	From          uint64    `json:"from"`
}

const checkpointKey = "checkpoint"

func (e *exporter) saveCheckpoint(ctx context.Context) error {
	e.savedAt = time.Now()
	from := e.index.checkpoint()
	if from == e.saved {
		return nil
	}
	value, err := json.Marshal(checkpoint{StreamCreated: e.created, From: from})
	if err != nil {
		return fmt.Errorf("encode the checkpoint: %w", err)
	}
	return e.env.Retry.Do(ctx, "save the checkpoint", func() error {
		if err := e.confirm(ctx); err != nil {
			return err
		}
		if _, err := e.seals.Put(ctx, checkpointKey, value); err != nil {
			return err
		}
		e.saved = from
		return nil
	})
}

// loadCheckpoint returns the RECEIPTS sequence to begin at: 0 is the first. It returns 0 if there
// is no checkpoint or it belongs to another stream.
func loadCheckpoint(ctx context.Context, seals Bucket, created time.Time) (uint64, error) {
	value, _, err := seals.GetNewest(ctx, checkpointKey)
	if errors.Is(err, stream.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("load the checkpoint: %w", err)
	}
	var c checkpoint
	if err := json.Unmarshal(value, &c); err != nil {
		return 0, fmt.Errorf("load the checkpoint: %w", err)
	}
	if !c.StreamCreated.Equal(created) {
		return 0, nil
	}
	return c.From, nil
}
