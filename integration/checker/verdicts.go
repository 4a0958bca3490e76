package checker

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// checkVerdicts: each trace has exactly one current verdict, the one that the pure
// function returns, and an alert for its violations and one for its findings.
func (k *checker) checkVerdicts() {
	judge, err := aap.NewJudge(aap.DefaultThresholds())
	if err != nil {
		k.Fatal(err)
	}
	alerts := k.verdictAlerts()
	for _, row := range k.traces {
		if row.Verdict == nil {
			k.Errorf("verdicts: trace %s has no verdict", row.TraceID)
			continue
		}
		want := k.judge(judge, row)
		if got, wanted := k.plain(row.Verdict), k.plain(want); got != wanted {
			k.Errorf("verdicts: trace %s has\n%s\nthe judge says\n%s", row.TraceID, got, wanted)
		}
		id := store.VerdictID(&want.Metadata).String()
		k.checkAlert(alerts, row, subject.AlertViolation, id, len(want.Violations) > 0)
		k.checkAlert(alerts, row, subject.AlertFinding, id, len(want.Findings) > 0)
	}
	k.checkSessionAlerts(alerts)
	for alert, agent := range alerts {
		k.Errorf("verdicts: alert %s about agent %s belongs to no trace", alert, agent)
	}
	doubled := k.number("SELECT count() FROM (SELECT 1 FROM current_verdicts GROUP BY tenant, agent_id, trace_id, digest HAVING count() > 1)")
	k.seen.Doubled += doubled
	if doubled > 0 {
		k.Errorf("verdicts: %d traces have several current ones", doubled)
	}
}

// checkSessionAlerts: each session verdict with findings raised one alert.
func (k *checker) checkSessionAlerts(alerts map[string]string) {
	raised := 0
	for id := range alerts {
		if strings.HasPrefix(id, "session.") {
			raised++
			delete(alerts, id)
		}
	}
	found := k.number("SELECT count() FROM visible_session_verdicts WHERE notEmpty(finding_types)")
	if raised != found {
		k.Errorf("verdicts: %d alerts about sessions, %d session verdicts with findings", raised, found)
	}
}

// judge judges a stored trace again.
func (k *checker) judge(judge *aap.Judge, row *store.StoredTrace) *schema.Verdict {
	verdict := new(schema.Verdict)
	trace, err := schema.Admit(row.AgentID, row.Raw)
	if err != nil {
		k.Errorf("verdicts: trace %s is stored and not valid: %v", row.TraceID, err)
		return verdict
	}
	card, err := k.registry.Lookup(k.Context(), trace.CardID)
	if errors.Is(err, cards.ErrUnknown) {
		judge.Unknown(trace, time.Time{}, verdict)
		return verdict
	}
	if err != nil {
		k.Fatal(err)
	}
	facts := aap.Facts{
		Received:  row.Received,
		RevokedAt: k.registry.RevokedAt(trace.CardID),
	}
	if own := k.registry.Instead(card.Entry, trace.AgentID, trace.Timestamp); own != nil {
		facts.InForce = own.CardID
	}
	judge.Verify(trace, card.Compiled, facts, time.Time{}, verdict)
	return verdict
}

// plain returns a verdict as text, without the time of verification. Empty lists count as absent.
func (k *checker) plain(v *schema.Verdict) string {
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
	return k.text(&copied)
}

// verdictAlerts maps the ids of the alerts about traces to their agents. The same
// alert may be in the stream twice, after a longer outage.
func (k *checker) verdictAlerts() map[string]string {
	alerts := map[string]string{}
	for _, m := range k.readAll(stream.Alerts) {
		var verdict schema.Verdict
		if m.Subject == subject.Alert(subject.AlertDrift, agentOf(m.Data)) || strings.HasPrefix(m.ID(), session.LoopAlertPrefix) {
			continue // checkDrift compares them
		}
		if err := json.Unmarshal(m.Data, &verdict); err != nil {
			k.Errorf("verdicts: a message on %s cannot be decoded as an alert: %v", m.Subject, err)
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

func (k *checker) checkAlert(alerts map[string]string, row *store.StoredTrace, kind subject.AlertKind, verdict string, wanted bool) {
	id := string(kind) + "." + verdict
	if wanted && alerts[id] != row.AgentID {
		k.Errorf("verdicts: trace %s has no %s alert", row.TraceID, kind)
	}
	if wanted {
		delete(alerts, id)
	}
}
