package store

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// LoopAlert is an alert about a loop, and what the broker knows about the trace that made it a loop.
type LoopAlert struct {
	schema.LoopAlert
	Received      time.Time
	RetainUntil   time.Time // zero: forever
	StreamCreated time.Time
	Sequence      uint64
}

type loopRow struct {
	Owned
	EventHour     uint32        `ch:"event_hour"`
	AgentID       string        `ch:"agent_id"`
	AlertID       schema.Digest `ch:"alert_id"`
	AlertType     string        `ch:"alert_type"`
	CardID        string        `ch:"card_id"`
	SessionID     string        `ch:"session_id"`
	DetectedAt    time.Time     `ch:"detection_timestamp"`
	Received      time.Time     `ch:"received_at"`
	RetainUntil   RetainUntil   `ch:"retain_until"`
	StreamCreated time.Time     `ch:"stream_created"`
	Sequence      uint64        `ch:"stream_sequence"`
	Type          string        `ch:"type"`
	Severity      string        `ch:"severity"`
	Description   string        `ch:"description"`
	TraceID       string        `ch:"trace_id"`
	Field         string        `ch:"trace_field"`
	TraceDigest   schema.Digest `ch:"trace_digest"`
	EngineVersion string        `ch:"engine_version"`
}

// InsertLoopAlerts stores alerts about loops. One that is stored again is visible once.
func (w Writer) InsertLoopAlerts(ctx context.Context, alerts []LoopAlert) error {
	rows := make([]loopRow, len(alerts))
	for i := range alerts {
		a := &alerts[i]
		rows[i] = loopRow{
			EventHour: eventHour(a.DetectionTimestamp), AgentID: a.AgentID, AlertID: a.AlertID, AlertType: a.AlertType,
			CardID: a.CardID, SessionID: a.SessionID, DetectedAt: a.DetectionTimestamp,
			Received: a.Received, RetainUntil: RetainUntil(a.RetainUntil), StreamCreated: a.StreamCreated, Sequence: a.Sequence,
			Type: a.Finding.Type, Severity: string(a.Finding.Severity), Description: a.Finding.Description,
			TraceID: a.Finding.TraceID, Field: a.Finding.Field, TraceDigest: a.TraceDigest, EngineVersion: a.EngineVersion,
		}
	}
	return insertRows(ctx, w, "loop_alerts", rows)
}

// LoopAlerts returns every alert about a loop, in the order of the traces that made them loops.
func (r Reader) LoopAlerts(ctx context.Context) (alerts []LoopAlert, err error) {
	for row, err := range each[loopRow](ctx, r.db, "alerts about loops", queryLoopAlerts) {
		if err != nil {
			return nil, err
		}
		alerts = append(alerts, LoopAlert{
			LoopAlert: schema.LoopAlert{
				AlertID: row.AlertID, AlertType: row.AlertType, AgentID: row.AgentID, CardID: row.CardID, SessionID: row.SessionID,
				DetectionTimestamp: row.DetectedAt, TraceDigest: row.TraceDigest, EngineVersion: row.EngineVersion,
				Finding: schema.SessionFinding{
					Type: row.Type, Severity: schema.Severity(row.Severity), Description: row.Description, TraceID: row.TraceID, Field: row.Field,
				},
			},
			Received: row.Received, RetainUntil: time.Time(row.RetainUntil), StreamCreated: row.StreamCreated, Sequence: row.Sequence,
		})
	}
	slices.SortFunc(alerts, func(a, b LoopAlert) int {
		return cmp.Or(a.DetectionTimestamp.Compare(b.DetectionTimestamp), bytes.Compare(a.AlertID[:], b.AlertID[:]))
	})
	return alerts, nil
}

// LookUpLoopAlerts returns which of the alerts are stored.
func (r Reader) LookUpLoopAlerts(ctx context.Context, ids []schema.Digest) (map[schema.Digest]bool, error) {
	return r.storedDigests(ctx, "alerts about loops", "loop_alerts", "alert_id", ids)
}
