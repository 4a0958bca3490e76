package drift

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// Rows is where baselines, points, alerts and states become durable (store.Store).
type Rows interface {
	DriftStates(ctx context.Context, streamCreated time.Time, partition int) ([]store.DriftState, error)
	InsertDriftBaselines(ctx context.Context, baselines []store.DriftBaseline) error
	InsertDriftPoints(ctx context.Context, points []store.DriftPoint) error
	InsertDriftAlerts(ctx context.Context, alerts []store.DriftAlert) error
	InsertDriftStates(ctx context.Context, states []store.DriftState) error
}

// Outlet is where alerts are published (stream.Client).
type Outlet interface {
	PublishAlerts(ctx context.Context, alerts []stream.Alert) error
}

// Acknowledge acknowledges messages (stream.Acknowledge).
type Acknowledge func(ctx context.Context, messages []stream.Message) error

// commit makes a yield durable and then acknowledges its messages. The order is
// the promise: baselines, points, alerts, alert messages, states, ack. A row names
// only what is stored before it; each step absorbs its own repetition, and is repeated
// until it holds or ctx ends. The lease is confirmed before the first and before the last.
func (s *stage) commit(ctx context.Context, y *yield) error {
	if len(y.settled) == 0 {
		return nil
	}
	release := stream.Hold(ctx, y.settled, func(err error) { s.env.Log.Warn("cannot hold off redelivery", "error", err) })
	defer release()
	for _, step := range []struct {
		operation string
		do        func(context.Context, *yield) error
	}{
		{"confirm the lease", s.confirmed},
		{"insert drift baselines", s.insertBaselines},
		{"insert drift points", s.insertPoints},
		{"insert drift alerts", s.insertAlerts},
		{"publish drift alerts", s.publishAlerts},
		{"insert drift states", s.insertStates},
		{"confirm the lease", s.confirmed},
	} {
		if err := s.env.Retry.Do(ctx, step.operation, func() error { return step.do(ctx, y) }); err != nil {
			return err
		}
	}
	// Once is enough: the states name these messages, and one that comes again is
	// acknowledged again.
	if err := s.acknowledge(ctx, y.settled); err != nil {
		s.env.Log.Warn("applied traces may come again", "error", err)
	}
	s.metrics.committed(y)
	return nil
}

func (s *stage) confirmed(ctx context.Context, _ *yield) error { return s.confirm(ctx) }

func (s *stage) insertBaselines(ctx context.Context, y *yield) error {
	return s.rows.InsertDriftBaselines(ctx, y.baselines)
}

func (s *stage) insertPoints(ctx context.Context, y *yield) error {
	return s.rows.InsertDriftPoints(ctx, y.points)
}

func (s *stage) insertAlerts(ctx context.Context, y *yield) error {
	return s.rows.InsertDriftAlerts(ctx, y.alerts)
}

func (s *stage) publishAlerts(ctx context.Context, y *yield) error {
	return publishAlerts(ctx, s.outlet, y.alerts)
}

func publishAlerts(ctx context.Context, outlet Outlet, alerts []store.DriftAlert) error {
	if len(alerts) == 0 {
		return nil
	}
	messages := make([]stream.Alert, len(alerts))
	for i := range alerts {
		alert := &alerts[i].DriftAlert
		data, err := json.Marshal(alert)
		if err != nil {
			return fmt.Errorf("encode drift alert %s: %w", alert.AlertID, err)
		}
		messages[i] = stream.Alert{Kind: subject.AlertDrift, Agent: alert.AgentID, ID: alert.AlertID.String(), Data: data}
	}
	return outlet.PublishAlerts(ctx, messages)
}

func (s *stage) insertStates(ctx context.Context, y *yield) error {
	return s.rows.InsertDriftStates(ctx, y.states)
}
