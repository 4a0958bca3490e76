package exporter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/opledger"
	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/tlog"
)

// openLog opens the transparency log. The log must be a continuation of the heads in bucket seals
// and in the operator's ledger.
func (e *exporter) openLog(ctx context.Context, broker *stream.Client) (err error) {
	var kept []*anchor.Checkpoint
	inBucket := func() (*events.LogHead, error) { return e.headInBucket(ctx, broker) }
	for _, read := range []func() (*events.LogHead, error){inBucket, e.headInLedger} {
		head, err := read()
		if err != nil {
			return fmt.Errorf("find what is kept of the transparency log: %w", err)
		}
		if head == nil {
			continue
		}
		if head.Origin != e.cfg.logOrigin() {
			e.env.Log.Warn("another transparency log was kept before", "origin", head.Origin, "leaves", head.Size, "now", e.cfg.logOrigin())
			continue
		}
		checkpoint, err := head.Checkpoint()
		if err != nil {
			return err
		}
		kept = append(kept, checkpoint)
	}
	e.anchors.log, err = tlog.OpenLog(e.cfg.logDir(), e.signer.logKey(e.cfg.logOrigin()), kept...)
	if errors.Is(err, tlog.ErrNotKept) || errors.Is(err, tlog.ErrTampered) {
		err = fmt.Errorf("%w; put the directory back from a backup; where the log is lost, move the directory away "+
			"and begin a log under another name (log_origin; --log-origin of up): under the same name others would see two histories of one log", err)
	}
	return err
}

// headInBucket returns the head that bucket seals keeps, nil where it has none.
func (e *exporter) headInBucket(ctx context.Context, broker *stream.Client) (*events.LogHead, error) {
	var value []byte
	err := e.env.Open(ctx, broker, func() (err error) {
		value, _, err = e.seals.GetNewest(ctx, seal.LogKey)
		return err
	})
	if errors.Is(err, stream.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	head := new(events.LogHead)
	if err := json.Unmarshal(value, head); err != nil {
		return nil, fmt.Errorf("key %q of bucket seals: %w", seal.LogKey, err)
	}
	return head, nil
}

// headInLedger returns the newest head of the log in the ledger's files. Bucket seals has only
// the head of the most recent log, which may have another name.
func (e *exporter) headInLedger() (head *events.LogHead, err error) {
	err = opledger.Last(e.cfg.ledgerDir(), func(p *opledger.Placed) bool {
		found := headOf(p)
		if found == nil || found.Origin != e.cfg.logOrigin() {
			return false
		}
		head = found
		return true
	})
	return head, err
}

// headOf returns the head in an entry, nil for other entries.
func headOf(p *opledger.Placed) *events.LogHead {
	if p.Type != ledger.Meta {
		return nil
	}
	event, err := p.Event()
	head := new(events.LogHead)
	if err != nil || json.Unmarshal(event.Data, head) != nil || head.Kind != events.KindLogHead {
		return nil
	}
	return head
}

// keepHead writes the log's head to bucket seals. A session is marked as sealed only after that.
func (e *exporter) keepHead(ctx context.Context) error {
	if e.anchors.log == nil {
		return nil
	}
	e.anchors.mu.Lock() // an older head must not overwrite a newer one
	defer e.anchors.mu.Unlock()
	head := e.anchors.log.Head()
	if head == e.anchors.kept {
		return nil
	}
	value, err := json.Marshal(events.LogHeadOf(&head))
	if err != nil {
		return fmt.Errorf("encode the head of the transparency log: %w", err)
	}
	if err := e.confirm(ctx); err != nil { // another exporter may have the log: its head must not go back
		return err
	}
	if _, err := e.seals.Put(ctx, seal.LogKey, value); err != nil {
		return fmt.Errorf("keep the head of the transparency log: %w", err)
	}
	e.anchors.kept = head
	return nil
}

// headEvents returns the event with the log's head for the ledger, none where no log is
// configured.
func (e *exporter) headEvents() ([]ledger.Event, error) {
	if e.anchors.log == nil {
		return nil, nil
	}
	head := e.anchors.log.Head()
	event, err := events.LogHeadOf(&head).Event()
	return []ledger.Event{event}, err
}
