package messages

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/message"
	"github.com/plumbline/plumbline/message/audit"
	"github.com/plumbline/plumbline/schema"
)

// Auditor compares traces with the records that they cite. Any goroutine may use it.
type Auditor struct {
	policies *Policies
	records  *Records
}

// NewAuditor returns an auditor of the agents in the policies. It caches a limited number of
// records in memory.
func NewAuditor(policies *Policies, bucket Bucket) *Auditor {
	return &Auditor{policies: policies, records: NewRecords(&caching{Bucket: bucket})}
}

// Findings returns the findings T1 to T6 of a trace. The error is the broker's, after which it is
// safe to try again.
func (a *Auditor) Findings(ctx context.Context, t *schema.Trace, now time.Time) ([]schema.Remark, error) {
	policy := a.policies.Of(t.AgentID, now)
	if policy.Mode == message.Off {
		return nil, nil
	}
	citation, malformed := audit.ReadCitation(t)
	if malformed != nil {
		citation = nil
	}
	var known *audit.Known
	if citation != nil {
		var err error
		if known, err = a.known(ctx, t, citation); err != nil {
			return nil, fmt.Errorf("look up what trace %s cites: %w", t.TraceID, err)
		}
	}
	return audit.Examine(t, citation, malformed, known, policy), nil
}

// known looks up everything that the trace cites.
func (a *Auditor) known(ctx context.Context, t *schema.Trace, c *audit.Citation) (*audit.Known, error) {
	known := &audit.Known{Results: make([]*message.Record, len(c.Results))}
	session := schema.SessionID(t)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		if known.Message, err = a.records.Message(ctx, c.MessageID); err == nil && known.Message != nil {
			known.Accepted, err = a.records.Acceptance(ctx, known.Message)
		}
		return err
	})
	if c.CallID != "" {
		group.Go(func() (err error) {
			known.Call, err = a.records.Call(ctx, c.CallID)
			return err
		})
	}
	for i := range c.Results {
		group.Go(func() (err error) {
			known.Results[i], err = a.records.Result(ctx, t.AgentID, session, c.Results[i].Seq)
			return err
		})
	}
	return known, group.Wait()
}

// maxCached limits each of the two generations of a caching bucket.
const maxCached = 10_000

// caching is a bucket that reads each record once and caches it for a while, because records
// never change. It does not cache the absence of a record.
type caching struct {
	Bucket

	mu            sync.Mutex
	recent, older map[string][]byte
}

// GetNewest returns the cached value, or else that of the bucket.
func (r *caching) GetNewest(ctx context.Context, key string) (value []byte, revision uint64, err error) {
	if value, known := r.cached(key); known {
		return value, 0, nil
	}
	value, revision, err = r.Bucket.GetNewest(ctx, key)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.put(key, value)
	}
	return value, revision, err
}

// cached looks a value up in the cache, and moves it into the recent generation.
func (r *caching) cached(key string) (value []byte, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if value, known = r.recent[key]; known {
		return value, true
	}
	if value, known = r.older[key]; known {
		r.put(key, value)
	}
	return value, known
}

// put adds a value to the recent generation. The caller has locked mu.
func (r *caching) put(key string, value []byte) {
	if len(r.recent) >= maxCached || r.recent == nil {
		r.recent, r.older = make(map[string][]byte), r.recent
	}
	r.recent[key] = value
}
