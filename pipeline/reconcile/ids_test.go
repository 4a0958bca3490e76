package reconcile_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/reconcile"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// A verdict that the database shows under a wrong id is reported, and so is an alert that was
// published under a wrong id.
func TestWrongIDsAreReported(t *testing.T) {
	s := newSite(t)
	s.Register(t, pipelinetest.Card("ac", "a"))
	paid := pipelinetest.EndsInNUL(func(i int) stream.Record {
		return pipelinetest.Trace(fmt.Sprintf("paid-%d", i), "a", "ac", "s", "2026-11-01T00:00:00Z", "pay")
	})
	s.publishLedgerEntry(t, "no entry")
	s.Publish(t, trace("found", "s", 1), paid)
	s.end(t, "s", 1)
	pipelinetest.Await(t, "the alerts", func() bool {
		state, err := s.Client.StreamState(t.Context(), stream.Alerts)
		return err == nil && state.LastSequence == 2
	})
	s.rest(t)
	summary, found := s.compare(t)
	if len(found) != 0 || summary.Counts.Alerts != 2 {
		t.Errorf("%d alerts; reported:\n%s", summary.Counts.Alerts, lines(found))
	}

	// The column as it was once defined: it cuts NUL bytes off the digest.
	s.exec(t, `ALTER TABLE verdicts MODIFY COLUMN verdict_id String ALIAS lower(hex(SHA256(concat(toString(trace_digest), card_digest, engine_version, '\0', profile))))`)
	s.demand(t, map[reconcile.Kind]string{reconcile.VerdictID: `session "s" trace "paid-`})
	if _, found := s.compare(t); len(found) != 1 {
		t.Errorf("reported, want the one verdict:\n%s", lines(found))
	}

	s.exec(t, `ALTER TABLE verdicts MODIFY COLUMN verdict_id String ALIAS lower(hex(SHA256(concat(trace_digest, card_digest, engine_version, '\0', profile))))`)
	drift := func(id, revision string) wire.Alert {
		return wire.Alert{Kind: subject.AlertDrift, Agent: "a", ID: strings.Repeat("ab", 32) + id, Data: []byte(`{"agent_id":"a","alert_id":"` + strings.Repeat("ab", 32) + `"` + revision + `}`)}
	}
	for _, right := range []wire.Alert{drift("", ""), drift(".2", `,"revision":2`)} { // before alerts had events, and the second event
		if err := s.Client.PublishAlerts(t.Context(), []wire.Alert{right}); err != nil {
			t.Fatal(err)
		}
	}
	if _, found := s.compare(t); len(found) != 0 {
		t.Errorf("reported of right ids:\n%s", lines(found))
	}
	for _, alert := range []wire.Alert{
		drift(".1", `,"revision":2`),
		{Kind: subject.AlertViolation, ID: "violation.ab", Data: []byte(`{"trace_id":"tr","agent_id":"a"}`)},
		{Kind: subject.AlertDrift, ID: "drift.ab", Data: []byte(`{"agent_id":"a"}`)},
		{Kind: subject.AlertFinding, ID: "session.ab", Data: []byte(`{"agent_id":"a","session_id":"s"}`)},
		{Kind: subject.AlertFinding, ID: "finding.ab", Data: []byte(`no verdict`)},
		{Kind: subject.AlertFinding, ID: "ab", Data: []byte(`{"agent_id":"a","sequence":1}`)},
	} {
		alert.Agent = "a"
		if err := s.Client.PublishAlerts(t.Context(), []wire.Alert{alert}); err != nil {
			t.Fatal(err)
		}
		s.demand(t, map[reconcile.Kind]string{reconcile.AlertID: fmt.Sprintf("%q", alert.ID)})
	}
	if _, found := s.compare(t); len(found) != 6 {
		t.Errorf("reported, want the six alerts:\n%s", lines(found))
	}
	s.checkLoopsHaveRows(t)
}

// checkLoopsHaveRows publishes an alert about a loop, which is reported until it is a row.
func (s *site) checkLoopsHaveRows(t *testing.T) {
	t.Helper()
	measured := trace("found", "s", 1)
	for _, digest := range []schema.Digest{measured.Digest, schema.DigestOf([]byte("a trace that retention has removed"))} {
		alert := store.LoopAlert{Received: time.Now(), LoopAlert: session.LoopAlert("a", "ac", "s", digest, time.Now(), schema.SessionFinding{TraceID: "found"})}
		data, err := json.Marshal(alert.LoopAlert)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Client.PublishAlerts(t.Context(), []wire.Alert{{Kind: subject.AlertFinding, Agent: "a", ID: session.LoopAlertPrefix + alert.AlertID.String(), Data: data}}); err != nil {
			t.Fatal(err)
		}
		_, found := s.compare(t)
		missing := slices.DeleteFunc(found, func(d reconcile.Difference) bool { return d.Kind != reconcile.LoopMissing })
		if (len(missing) == 1) != (digest == measured.Digest) {
			t.Errorf("reported:\n%s", lines(missing))
		}
		if err := s.Store.InsertLoopAlerts(t.Context(), []store.LoopAlert{alert}); err != nil {
			t.Fatal(err)
		}
	}
	if _, found := s.compare(t); len(found) != 6 {
		t.Errorf("reported, want the six alerts:\n%s", lines(found))
	}
}

// publishLedgerEntry publishes an entry of agent a's own ledger.
func (s *site) publishLedgerEntry(t *testing.T, entry string) {
	t.Helper()
	conn, err := nats.Connect(s.Broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Request(subject.Ledger("a"), []byte(entry), time.Minute); err != nil {
		t.Fatal(err)
	}
}
