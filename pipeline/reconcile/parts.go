package reconcile

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
)

// places reads the traces of all sessions, in the same order as bundle rows.
type places struct {
	*cursor[store.SessionPlace]
}

func openPlaces(ctx context.Context, rows *store.Store) (*places, error) {
	c, err := open(rows.SessionPlaces(ctx), func(p *store.SessionPlace) place { return place{p.StreamCreated, p.Sequence} })
	return &places{c}, err
}

// seek advances to the first trace of a session.
func (p *places) seek(key store.SessionKey) error {
	for p.head != nil && cmp.Or(cmp.Compare(p.head.AgentID, key.AgentID), cmp.Compare(p.head.SessionID, key.SessionID)) < 0 {
		if err := p.advance(); err != nil {
			return err
		}
	}
	return nil
}

// take returns the ids of the session's traces up to a sequence. whole is false where some of
// them came from another stream, whose sequences cannot be compared.
func (p *places) take(key store.SessionKey, created time.Time, last uint64) (ids []string, whole bool, err error) {
	for p.head != nil && p.head.AgentID == key.AgentID && p.head.SessionID == key.SessionID {
		if !p.head.StreamCreated.Equal(created) {
			return ids, false, nil
		}
		if p.head.Sequence > last {
			break
		}
		ids = append(ids, p.head.TraceID)
		if err := p.advance(); err != nil {
			return ids, false, err
		}
	}
	return ids, true, nil
}

// checkTracesOf checks that the rows of a session up to a part's last sequence are the traces
// that its bundles contain.
func (c *check) checkTracesOf(parts []*store.Bundle, places *places) error {
	key := store.SessionKey{AgentID: parts[0].AgentID, SessionID: parts[0].SessionID}
	if err := places.seek(key); err != nil {
		return err
	}
	for _, b := range parts {
		ids, whole, err := places.take(key, c.horizon.created, b.LastSequence)
		if err != nil {
			return err
		}
		if !whole {
			return nil
		}
		if err := c.compareTraces(b, ids); err != nil {
			return err
		}
	}
	return nil
}

// compareTraces compares the ids of a part's rows with those that its bundle lists. A missing row
// whose message the stream still holds is reported with the message.
func (c *check) compareTraces(b *store.Bundle, ids []string) error {
	unsealed, gone := differences(ids, b.TraceIDs)
	c.count().Sealed += uint64(len(ids) - len(unsealed))
	for _, id := range unsealed {
		d := about(TraceUnsealed, b)
		d.TraceID = id
		if err := c.differ(d, "the row lies within the part, and its bundle does not hold the trace"); err != nil {
			return err
		}
	}
	if b.FirstSequence >= c.horizon.first {
		return nil
	}
	for _, id := range gone {
		if c.expired(b.AgentID, b.FirstEvent) {
			c.count().Expired++
			continue
		}
		d := about(SealedRowMissing, b)
		d.TraceID = id
		if err := c.differ(d, "the bundle holds the trace, and there is no row"); err != nil {
			return err
		}
	}
	return nil
}

// differences returns the ids that only one of the lists has, or has more often.
func differences(a, b []string) (onlyA, onlyB []string) {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
			onlyA, a = append(onlyA, a[0]), a[1:]
		case len(a) == 0 || b[0] < a[0]:
			onlyB, b = append(onlyB, b[0]), b[1:]
		default:
			a, b = a[1:], b[1:]
		}
	}
	return onlyA, onlyB
}
