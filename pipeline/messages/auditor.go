package messages

import (
	"context"
	"fmt"
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
	return &Auditor{policies: policies, records: NewRecords(&remembering{Bucket: bucket})}
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
