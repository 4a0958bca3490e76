package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/pipeline/opledger"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/walk"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// checkAlerts checks that every message of stream ALERTS was published under the id of its
// subject: a verdict, an event of a drift alert, a loop, an entry of an agent's ledger. Rows are
// joined with alerts by that id. It also checks that loops have rows.
func (c *check) checkAlerts(ctx context.Context) error {
	state, err := c.Client.StreamState(ctx, stream.Alerts)
	if err != nil {
		return err
	}
	ledgers, err := c.Client.StreamState(ctx, stream.AgentLedger)
	if err != nil {
		return err
	}
	var loops []publishedLoop
	for m, err := range walk.Messages(ctx, c.Client, stream.Alerts, state) {
		if err != nil {
			return err
		}
		c.count().Alerts++
		about, id, err := c.alertID(m, ledgers.Created)
		about.Kind, about.Sequence = AlertID, m.Sequence
		switch {
		case err != nil:
			c.differ(about, "the alert %.200q cannot be read: %v", m.ID(), err)
		case id != m.ID():
			c.differ(about, "the alert was published under the id %.200q, the id of its subject is %q", m.ID(), id)
		}
		if c.failed != nil {
			return nil
		}
		if strings.HasPrefix(id, session.LoopAlertPrefix) && id == m.ID() {
			loop := publishedLoop{about: about, received: m.Received}
			if err := json.Unmarshal(m.Data, &loop.LoopAlert); err != nil {
				return fmt.Errorf("read the alert at sequence %d of stream ALERTS: %w", m.Sequence, err) // alertID has read it
			}
			loops = append(loops, loop)
		}
		if len(loops) == lookAtOnce {
			if err := c.checkLoops(ctx, loops); err != nil {
				return err
			}
			loops = loops[:0]
		}
	}
	return c.checkLoops(ctx, loops)
}

// publishedLoop is an alert about a loop as stream ALERTS has it.
type publishedLoop struct {
	schema.LoopAlert
	about    Difference
	received time.Time
}

// aDay is longer than it normally takes until the alert about a received trace is published. Retention
// counts from the receipt of the trace.
const aDay = 24 * time.Hour

// checkLoops reports alerts about loops that have no row, although their traces have points: drift
// stores both before it publishes the alert.
func (c *check) checkLoops(ctx context.Context, loops []publishedLoop) error {
	if len(loops) == 0 {
		return nil
	}
	ids := make([]schema.Digest, len(loops))
	for i := range loops {
		ids[i] = loops[i].AlertID
	}
	stored, err := c.Store.LookUpLoopAlerts(ctx, ids)
	if err != nil {
		return err
	}
	missing := slices.DeleteFunc(loops, func(l publishedLoop) bool { return stored[l.AlertID] || c.expired(l.AgentID, l.received.Add(-aDay)) })
	if len(missing) == 0 {
		return nil
	}
	traces := make([]schema.Digest, len(missing))
	for i := range missing {
		traces[i] = missing[i].TraceDigest
	}
	measured, err := c.Store.MeasuredDigests(ctx, traces)
	if err != nil {
		return err
	}
	for i := range missing {
		if l := &missing[i]; measured[l.TraceDigest] {
			l.about.Kind = LoopMissing
			c.differ(l.about, "the alert about a loop was published, and it is no row of loop_alerts")
		}
	}
	return nil
}

// alertID returns the subject of an alert and the id that the alert must have. ledgers is the
// creation time of the stream of agents' ledgers.
func (c *check) alertID(m *stream.Message, ledgers time.Time) (about Difference, id string, err error) {
	kind, err := subject.ParseAlert(m.Subject)
	switch {
	case err != nil:
		return about, "", err
	case kind == subject.AlertDrift:
		var alert schema.DriftAlert
		err = json.Unmarshal(m.Data, &alert)
		about.AgentID, id = alert.AgentID, wire.DriftAlertID(&alert)
	case kind == subject.AlertFinding && strings.HasPrefix(m.ID(), session.AlertPrefix):
		var v schema.SessionVerdict
		err = json.Unmarshal(m.Data, &v)
		about.AgentID, about.SessionID, about.Part = v.AgentID, v.SessionID, v.Part
		id = session.AlertPrefix + session.VerdictID(c.Store.Tenant(), &v).String()
	case kind == subject.AlertFinding && strings.HasPrefix(m.ID(), session.LoopAlertPrefix):
		var alert schema.LoopAlert
		err = json.Unmarshal(m.Data, &alert)
		about.AgentID, about.SessionID, about.TraceID = alert.AgentID, alert.SessionID, alert.Finding.TraceID
		id = session.LoopAlertPrefix + session.LoopAlertID(&alert).String()
	case kind == subject.AlertFinding && !strings.Contains(m.ID(), "."): // about an entry of an agent's ledger
		var alert struct {
			AgentID  string `json:"agent_id"`
			Sequence uint64 `json:"sequence"`
		}
		err = json.Unmarshal(m.Data, &alert)
		about.AgentID, id = alert.AgentID, opledger.FaultAlertID(alert.AgentID, ledgers, alert.Sequence)
		if m.Received.Before(ledgers) { // it is of an earlier stream, whose creation time is unknown
			id = m.ID()
		}
	default:
		var v schema.Verdict
		err = json.Unmarshal(m.Data, &v)
		about.AgentID, about.TraceID = v.AgentID, v.TraceID
		id = fmt.Sprintf("%s.%s", kind, store.VerdictID(&v.Metadata))
	}
	return about, id, err
}
