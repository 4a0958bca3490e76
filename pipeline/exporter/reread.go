package exporter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
)

// Reader reads stream RECEIPTS again (stream.Consumer).
type Reader interface {
	Fetch(ctx context.Context, into []stream.Message, maxMessages, maxBytes int, wait time.Duration) ([]stream.Message, error)
	Close()
}

const (
	rereadMessages = 256
	rereadBytes    = 4 << 20
	rereadWait     = 20 * time.Millisecond
)

// rereading is a session whose receipts are being folded again.
type rereading struct {
	session *openSession // the session in the index
	folded  openSession  // the result, which replaces the session's receipts
	after   uint64       // bundles hold the traces up to this sequence
}

// reread folds again the receipts of the sessions that lack some. It reads the stream once for
// all of them, up to the position of the index.
func (e *exporter) reread(ctx context.Context) error {
	var lacking []*openSession
	for _, s := range e.index.sessions {
		if s.lacks(e.cfg) {
			lacking = append(lacking, s)
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	return e.env.Retry.Do(ctx, "read receipts again", func() error {
		folding, from := make(map[streamKey]*rereading, len(lacking)), lacking[0].from
		for _, s := range lacking {
			last, _, err := e.lastRecord(ctx, s.key)
			if err != nil {
				return err
			}
			folding[streamKey{s.key, s.stream}] = &rereading{session: s, folded: openSession{key: s.key, keep: s.keep}, after: e.index.covered(s, &last)}
			from = min(from, s.from)
		}
		if err := e.foldAgain(ctx, folding, from); err != nil {
			return fmt.Errorf("read stream %s from message %d: %w", stream.Receipts, from, err)
		}
		for _, a := range folding { // all other fields of the session stay
			s, f := a.session, &a.folded
			s.receipts, s.bytes, s.overflow, s.from, s.short = f.receipts, f.bytes, f.overflow, f.from, false
			e.index.closeEmpty(s)
		}
		return nil
	})
}

// foldAgain folds the receipts of these sessions from a message on.
func (e *exporter) foldAgain(ctx context.Context, folding map[streamKey]*rereading, from uint64) error {
	source, err := e.receiptsFrom(ctx, from)
	if err != nil {
		return err
	}
	defer source.Close()
	var messages []stream.Message
	for at := from; at <= e.index.position; {
		messages, err = source.Fetch(ctx, messages[:0], rereadMessages, rereadBytes, rereadWait)
		for i := range messages {
			m := &messages[i]
			within := m.Sequence >= at && m.Sequence <= e.index.position
			if at = max(at, m.Sequence+1); !within {
				continue
			}
			receipts, _, damaged := wire.DecodeReceipts(m.Data, e.receipts[:0])
			if damaged != nil { // it was reported when it was folded first
				continue
			}
			e.receipts = receipts
			for j := range receipts {
				r := &receipts[j]
				a := folding[streamKey{store.SessionKey{AgentID: r.AgentID, SessionID: r.SessionID}, e.index.streamOf(r.Stream, m)}]
				if a == nil || r.Sequence <= a.after {
					continue
				}
				if a.folded.from == 0 {
					a.folded.from = m.Sequence
				}
				a.folded.add(r)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// savePosition records how far the receipts of the partitions are done.
func (e *exporter) savePosition(ctx context.Context) error {
	e.savedAt = time.Now()
	through := e.index.checkpoint() - 1
	if through <= e.source.Position() {
		return nil
	}
	return e.env.Retry.Do(ctx, "record the position", func() error { return e.source.Done(ctx, through) })
}

// checkpoint is the position of versions that had one for all partitions, in bucket seals.
type checkpoint struct {
	StreamCreated time.Time `json:"stream_created"` // of RECEIPTS
	From          uint64    `json:"from"`
}

const checkpointKey = "checkpoint"

// loadCheckpoint returns the RECEIPTS sequence at which an earlier version would begin: 0 is the first.
// It returns 0 if there is no checkpoint or it belongs to another stream.
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
