package exporter

import (
	"context"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
)

// Reader reads stream RECEIPTS again (stream.Consumer).
type Reader interface {
	Source
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
func (e *exporter) reread(ctx context.Context, created time.Time) error {
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
		folding, from, err := e.begin(ctx, lacking, created)
		if err != nil {
			return err
		}
		if err := e.foldAgain(ctx, folding, from); err != nil {
			return fmt.Errorf("read stream %s from message %d: %w", stream.Receipts, from, err)
		}
		for _, a := range folding {
			a.end()
			e.index.closeEmpty(a.session)
		}
		return nil
	})
}

// begin determines how much of each session is in bundles, and where to start reading.
func (e *exporter) begin(ctx context.Context, sessions []*openSession, created time.Time) (folding map[store.SessionKey]*rereading, from uint64, err error) {
	folding, from = make(map[store.SessionKey]*rereading, len(sessions)), sessions[0].from
	for _, s := range sessions {
		last, _, err := e.lastRecord(ctx, s.key)
		if err != nil {
			return nil, 0, err
		}
		folding[s.key] = &rereading{session: s, folded: openSession{key: s.key, keep: s.keep}, after: last.Covered(created)}
		from = min(from, s.from)
	}
	return folding, from, nil
}

func (e *exporter) foldAgain(ctx context.Context, folding map[store.SessionKey]*rereading, from uint64) error {
	source, err := e.receiptsFrom(ctx, from)
	if err != nil {
		return err
	}
	defer source.Close()
	var messages []stream.Message
	for at := from; at <= e.index.position; {
		messages, err = source.Fetch(ctx, messages[:0], rereadMessages, rereadBytes, rereadWait)
		for i := range messages {
			if m := &messages[i]; m.Sequence >= at && m.Sequence <= e.index.position {
				e.foldMessage(folding, m)
			}
			at = max(at, messages[i].Sequence+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// foldMessage folds the receipts of these sessions in a message. A message that cannot be parsed
// was reported when it was folded first.
func (e *exporter) foldMessage(folding map[store.SessionKey]*rereading, m *stream.Message) {
	receipts, _, err := wire.DecodeReceipts(m.Data, e.receipts[:0])
	if err != nil {
		return
	}
	e.receipts = receipts
	for i := range receipts {
		r := &receipts[i]
		a := folding[store.SessionKey{AgentID: r.AgentID, SessionID: r.SessionID}]
		if a == nil || r.Sequence <= a.after {
			continue
		}
		if a.folded.from == 0 {
			a.folded.from = m.Sequence
		}
		a.folded.add(r)
	}
}

// end replaces the receipts of the session in the index. All its other fields stay.
func (a *rereading) end() {
	s, f := a.session, &a.folded
	s.receipts, s.bytes, s.overflow, s.from, s.short = f.receipts, f.bytes, f.overflow, f.from, false
}
