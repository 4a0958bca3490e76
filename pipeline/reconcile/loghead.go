package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/opledger"
	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/tlog"
)

// checkBucketHead compares the log with its head in bucket seals.
func (c *check) checkBucketHead(ctx context.Context) error {
	bucket, err := c.Client.Bucket(ctx, stream.Seals)
	if err != nil {
		return err
	}
	value, _, err := bucket.GetNewest(ctx, seal.LogKey)
	if errors.Is(err, stream.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.checkHead("bucket seals", value)
}

// announcedHead compares the log with a head that an entry of the ledger states.
func (l *ledgerCheck) announcedHead(event *opledger.Event) error {
	var said events.LogHead
	if json.Unmarshal(event.Data, &said) != nil || said.Kind != events.KindLogHead {
		return nil
	}
	return l.checkHead("the ledger", event.Data)
}

// checkHead compares the log with a head that is kept elsewhere. For each such place it reports
// only the first difference, since all later heads differ as well.
func (c *check) checkHead(where string, value []byte) error {
	head := new(events.LogHead)
	if err := json.Unmarshal(value, head); err != nil {
		return c.differHead(where, LogRolledBack, err)
	}
	kept, err := head.Checkpoint()
	switch {
	case err != nil:
		return c.differHead(where, LogRolledBack, err)
	case c.log == nil:
		there, err := isDir(c.Log)
		if there || err != nil || kept.Size == 0 {
			return err // the reason why it was not opened is reported already
		}
		return c.differHead(where, LogMissing, fmt.Errorf("it had %d leaves, and there is no log in %q", kept.Size, c.Log))
	case kept.Origin != c.log.Head().Origin: // a head of an earlier log
		return nil
	}
	c.count().Heads++
	log := c.log
	if kept.Size > log.Size() { // it may have grown since it was opened
		if log, err = tlog.OpenView(c.Log, c.logKeys...); err != nil {
			return err
		}
		defer func() { _ = log.Close() }()
	}
	if err := log.GoesOnFrom(kept); err != nil {
		return c.differHead(where, LogRolledBack, err)
	}
	return nil
}

func (c *check) differHead(where string, kind Kind, err error) error {
	if c.heads[where] {
		return nil
	}
	if c.heads == nil {
		c.heads = map[string]bool{}
	}
	c.heads[where] = true
	return c.differ(Difference{Kind: kind}, "by the head that %s keeps of it: %v", where, err)
}
