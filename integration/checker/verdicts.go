package checker

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// checkVerdicts: each trace has exactly one current verdict, the one that the pure
// function returns, and an alert for its violations and one for its findings.
func (w *walk) checkVerdicts() {
	judge, err := aap.NewJudge(aap.DefaultThresholds())
	if err != nil {
		w.Fatal(err)
	}
	alerts := w.verdictAlerts()
	for _, row := range w.traces {
		if row.Verdict == nil {
			w.Errorf("verdicts: trace %s has none", row.TraceID)
			continue
		}
		want := w.judge(judge, row)
		if got, wanted := w.plain(row.Verdict), w.plain(want); got != wanted {
			w.Errorf("verdicts: trace %s has\n%s\nthe judge says\n%s", row.TraceID, got, wanted)
		}
		id := store.VerdictID(&want.Metadata).String()
		w.checkAlert(alerts, row, subject.AlertViolation, id, len(want.Violations) > 0)
		w.checkAlert(alerts, row, subject.AlertFinding, id, len(want.Findings) > 0)
	}
	w.checkSessionAlerts(alerts)
	for alert, agent := range alerts {
		w.Errorf("verdicts: alert %s about agent %s belongs to no trace", alert, agent)
	}
	doubled := w.number("SELECT count() FROM (SELECT 1 FROM current_verdicts GROUP BY tenant, agent_id, trace_id, digest HAVING count() > 1)")
	w.seen.Doubled += doubled
	if doubled > 0 {
		w.Errorf("verdicts: %d traces have several current ones", doubled)
	}
}

// checkSessionAlerts: each session verdict with findings raised one alert.
func (w *walk) checkSessionAlerts(alerts map[string]string) {
	raised := 0
	for id := range alerts {
		if strings.HasPrefix(id, "session.") {
			raised++
			delete(alerts, id)
		}
	}
	found := w.number("SELECT count() FROM visible_session_verdicts WHERE notEmpty(finding_types)")
	if raised != found {
		w.Errorf("verdicts: %d alerts about sessions, %d session verdicts with findings", raised, found)
	}
}

// judge judges a stored trace again.
func (w *walk) judge(judge *aap.Judge, row *store.StoredTrace) *schema.Verdict {
	verdict := new(schema.Verdict)
	trace, err := schema.Admit(row.AgentID, row.Raw)
	if err != nil {
		w.Errorf("verdicts: trace %s is stored and not valid: %v", row.TraceID, err)
		return verdict
	}
	card, err := w.registry.Lookup(w.Context(), trace.CardID)
	if errors.Is(err, cards.ErrUnknown) {
		judge.Unknown(trace, time.Time{}, verdict)
		return verdict
	}
	if err != nil {
		w.Fatal(err)
	}
	facts := aap.Facts{
		Received:  row.Received,
		RevokedAt: w.registry.RevokedAt(trace.CardID),
	}
	if own := w.registry.Instead(card.Entry, trace.AgentID, trace.Timestamp); own != nil {
		facts.InForce = own.CardID
	}
	judge.Verify(trace, card.Compiled, facts, time.Time{}, verdict)
	return verdict
}

// plain returns a verdict as text, without the time of verification.
func (w *walk) plain(v *schema.Verdict) string {
	copied := *v
	copied.Timestamp = time.Time{}
	for _, list := range []*[]schema.Remark{&copied.Violations, &copied.Warnings, &copied.Findings} {
		if len(*list) == 0 {
			*list = nil
		}
	}
	if len(copied.Metadata.ChecksPerformed) == 0 {
		copied.Metadata.ChecksPerformed = nil
	}
	if len(copied.Metadata.Similarity.Similarities) == 0 {
		copied.Metadata.Similarity.Similarities = nil
	}
	text, err := json.Marshal(&copied)
	if err != nil {
		w.Fatal(err)
	}
	return string(text)
}

// verdictAlerts maps the ids of the alerts about traces to their agents. The same
// alert may be in the stream twice, after a longer outage.
func (w *walk) verdictAlerts() map[string]string {
	alerts := map[string]string{}
	for _, m := range w.readAll(stream.Alerts) {
		var verdict schema.Verdict
		if m.Subject == subject.Alert(subject.AlertDrift, agentOf(m.Data)) {
			continue
		}
		if err := json.Unmarshal(m.Data, &verdict); err != nil {
			w.Errorf("verdicts: an alert on %s is none: %v", m.Subject, err)
			continue
		}
		alerts[m.Header("Nats-Msg-Id")] = verdict.AgentID
	}
	return alerts
}

func agentOf(data []byte) string {
	var about struct {
		AgentID string `json:"agent_id"`
	}
	if json.Unmarshal(data, &about) != nil {
		return ""
	}
	return about.AgentID
}

func (w *walk) checkAlert(alerts map[string]string, row *store.StoredTrace, kind subject.AlertKind, verdict string, wanted bool) {
	id := string(kind) + "." + verdict
	if wanted && alerts[id] != row.AgentID {
		w.Errorf("verdicts: trace %s has no %s alert", row.TraceID, kind)
	}
	if wanted {
		delete(alerts, id)
	}
}
