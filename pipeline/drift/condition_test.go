package drift

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// An agent that denies what it did before, and then does it again, raises one alert: it opens, is
// updated and closes. Stream, table and views have the same events. The stage restarts while the alert
// is open, and a replay restores an event that is missing.
func TestOneChangeIsOneAlert(t *testing.T) {
	s := newScene(t, fleet.Config{Seed: 1, Agents: 1, Traces: 1})
	of := s.fleet.Cards()[0]
	d := diary{agent: of.AgentID, card: of.CardID, at: time.Now().Add(-3 * time.Hour)}
	publish := func(traces int, action string) { s.Publish(t, d.write(traces, action)...) }
	publish(72, "execute") // ten sessions are the baseline
	publish(40, "deny")
	s.watch()
	events := s.events()
	newest := &events[len(events)-1]
	if len(events) < 3 || newest.State != schema.AlertUpdated || newest.Count < 16 {
		t.Errorf("while it lasts, %d events, the newest %+v", len(events), newest)
	}
	s.expectListed(of.AgentID, "open", newest)
	publish(240, "execute")
	s.watch()
	events = s.events()
	for i := range events {
		e := &events[i]
		state := schema.AlertUpdated
		switch i {
		case 0:
			state = schema.AlertOpened
		case len(events) - 1:
			state = schema.AlertClosed
		}
		if e.State != state || e.Revision != i+1 || e.AlertID != events[0].AlertID || !e.OpenedAt.Equal(events[0].OpenedAt) ||
			i > 0 && e.Count < events[i-1].Count || e.ClosedAt.IsZero() == (state == schema.AlertClosed) || e.Summary == "" || len(e.Measures) == 0 || len(e.TraceIDs) == 0 {
			t.Errorf("event %d of %d: %+v", i+1, len(events), e)
		}
	}
	s.expectListed(of.AgentID, "closed", &events[len(events)-1])
	s.checkReplay()
	s.Exec(t, "ALTER TABLE %s DELETE WHERE revision = 2", "drift_alerts")
	if summary := s.replay(s.replayOf()); summary.AlertsWritten != 1 || summary.PointsWritten != 0 {
		t.Errorf("the replay wrote %+v, want the missing event", summary)
	}
	s.checkReplay()
}

// events returns the stored events of alerts, and requires that the messages on ALERTS are the same.
func (s *scene) events() (events []schema.DriftAlert) {
	s.t.Helper()
	stored, err := s.Store.DriftAlertEvents(s.t.Context())
	if err != nil || len(stored) == 0 {
		s.t.Fatalf("%d events, error %v", len(stored), err)
	}
	published := map[string]string{}
	for _, m := range s.read(stream.Alerts) {
		published[m.Header("Nats-Msg-Id")] = string(m.Data)
	}
	for i := range stored {
		e := stored[i].DriftAlert
		text, err := json.Marshal(e)
		if id := wire.DriftAlertID(&e); err != nil || published[id] != string(text) {
			s.t.Errorf("%s is stored as\n%s\npublished as\n%s", id, text, published[id])
		}
		events = append(events, e)
	}
	if len(published) != len(stored) {
		s.t.Errorf("%d messages for %d events", len(published), len(stored))
	}
	return events
}

// expectListed requires that one alert is listed, in this state, as its newest event says.
func (s *scene) expectListed(agent, state string, newest *schema.DriftAlert) {
	s.t.Helper()
	listed, err := s.Store.ListDriftAlerts(s.t.Context(), agent, false, 10)
	if err != nil || len(listed) != 1 {
		s.t.Fatalf("%d alerts are listed, error %v", len(listed), err)
	}
	a := listed[0]
	if a.State != state || a.AlertID != newest.AlertID.String() || int(a.Revision) != newest.Revision || int(a.Count) != newest.Count ||
		a.Summary != newest.Summary || (a.ClosedAt == nil) != (state == "open") {
		s.t.Errorf("listed is %+v, the newest event is %+v", a, newest)
	}
	open, err := s.Store.ListDriftAlerts(s.t.Context(), "", true, 10)
	if err != nil || (len(open) == 1) != (state == "open") {
		s.t.Errorf("%d alerts are open, error %v", len(open), err)
	}
}
