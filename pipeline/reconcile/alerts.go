package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/pipeline/opledger"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// checkAlerts checks that every message of stream ALERTS was published under the id of its
// subject: a verdict, a drift alert, an entry of an agent's ledger. Rows are joined with alerts
// by that id.
func (c *check) checkAlerts(ctx context.Context) error {
	state, err := c.Client.StreamState(ctx, stream.Alerts)
	if err != nil {
		return err
	}
	source, err := openReader(ctx, c.Client, stream.Alerts, state)
	if err != nil {
		return err
	}
	defer source.close()
	ledgers, err := c.Client.StreamState(ctx, stream.AgentLedger)
	if err != nil {
		return err
	}
	for m, err := range source.all(ctx) {
		if err != nil {
			return err
		}
		c.count().Alerts++
		about, id, err := c.alertID(m, ledgers.Created)
		about.Sequence = m.Sequence
		switch {
		case err != nil:
			err = c.differ(about, "the alert %.200q cannot be read: %v", m.ID(), err)
		case id != m.ID():
			err = c.differ(about, "the alert was published under the id %.200q, it is about %q", m.ID(), id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// alertID returns the subject of an alert and the id that the alert must have. ledgers is the
// creation time of the stream of agents' ledgers.
func (c *check) alertID(m *stream.Message, ledgers time.Time) (Difference, string, error) {
	about := Difference{Kind: AlertID}
	kind, err := subject.ParseAlert(m.Subject)
	switch {
	case err != nil:
		return about, "", err
	case kind == subject.AlertDrift:
		var alert schema.DriftAlert
		err := json.Unmarshal(m.Data, &alert)
		about.AgentID = alert.AgentID
		return about, alert.AlertID.String(), err
	case kind == subject.AlertFinding && strings.HasPrefix(m.ID(), session.AlertPrefix):
		var v schema.SessionVerdict
		err := json.Unmarshal(m.Data, &v)
		about.AgentID, about.SessionID, about.Part = v.AgentID, v.SessionID, v.Part
		return about, session.AlertPrefix + session.VerdictID(c.Store.Tenant(), &v).String(), err
	case kind == subject.AlertFinding && !strings.Contains(m.ID(), "."):
		return ledgerAlertID(m, ledgers)
	default:
		var v schema.Verdict
		err := json.Unmarshal(m.Data, &v)
		about.AgentID, about.TraceID = v.AgentID, v.TraceID
		return about, fmt.Sprintf("%s.%s", kind, store.VerdictID(&v.Metadata)), err
	}
}

// ledgerAlertID is alertID for an alert on an entry of an agent's ledger. The id of an alert from
// an earlier stream is accepted as it is, since the creation time of that stream is unknown.
func ledgerAlertID(m *stream.Message, ledgers time.Time) (Difference, string, error) {
	var alert struct {
		AgentID  string `json:"agent_id"`
		Sequence uint64 `json:"sequence"`
	}
	err := json.Unmarshal(m.Data, &alert)
	about := Difference{Kind: AlertID, AgentID: alert.AgentID}
	if m.Received.Before(ledgers) {
		return about, m.ID(), err
	}
	return about, opledger.FaultAlertID(alert.AgentID, ledgers, alert.Sequence), err
}

// checkVerdictID checks that the database shows a verdict under the id that alerts about it have.
func (t *traceCheck) checkVerdictID(v *store.JudgedTrace) error {
	id := v.ID().String()
	if v.StoredID == id {
		return nil
	}
	about := Difference{Kind: VerdictID, AgentID: v.AgentID, SessionID: v.SessionID, TraceID: v.TraceID, Sequence: v.Sequence}
	return t.differ(about, "column verdict_id is %.64q, the verdict's id is %s", v.StoredID, id)
}
