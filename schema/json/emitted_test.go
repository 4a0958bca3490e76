package jsonschema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/aap/coherence"
	"github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/schema"
)

var now = time.Date(2026, 2, 1, 0, 0, 0, 500, time.UTC)

func admit(t testing.TB, text string) *schema.Trace {
	t.Helper()
	trace, err := schema.Admit("", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func register(t testing.TB, text string) *schema.Card {
	t.Helper()
	card, err := schema.DecodeCard([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return card
}

// Emitted records validate, and have no member that their schema does not name.
func TestVerdictsValidate(t *testing.T) {
	oracle := compile(t, "verification-result", closed)
	judge, err := aap.NewJudge(aap.DefaultThresholds())
	if err != nil {
		t.Fatal(err)
	}
	card := aap.Compile(register(t, fullCard))
	var verdict schema.Verdict
	for _, edit := range []string{"", `"name": "search"|"name": "delete"`, `["honesty"]|["greed"]`, `"amount": 45.5|"amount": "much"`,
		`"card_id": "ac-1"|"card_id": "ac-9"`, `"required": true|"required": false`, `2026-01-31T12:30|2027-01-31T12:30`, `0.5}|0.1}`,
		`"agent_id": "a"|"agent_id": "b"`, `"approved",|"denied",`} {
		old, by, _ := strings.Cut(edit, "|")
		trace := admit(t, strings.Replace(fullTrace, old, by, 1))
		judge.Verify(trace, card, aap.Facts{GivenApart: true, Received: now, RevokedAt: now.AddDate(0, -1, 0)}, now, &verdict)
		validate(t, oracle, verdict)
		judge.Unknown(trace, now, &verdict)
		validate(t, oracle, verdict)
	}
}

func TestAlertsValidate(t *testing.T) {
	oracle := compile(t, "drift-alert", closed)
	card := drift.FactsOf(register(t, fullCard))
	var samples []drift.Sample
	for i := range 40 {
		text := strings.Replace(fullTrace, "12:30:00.25", fmt.Sprintf("12:%02d:00", i), 1)
		if i >= 20 {
			text = strings.NewReplacer(`["honesty"]`, `["greed"]`, `"search"`, `"sell"`, `"execute"`, `"recommend"`, `"bounded"`, `"forbidden"`,
				`"required": true`, `"required": false`, `"evaluated": true`, `"evaluated": false`, `"confidence": 0.5`, `"confidence": 0.1`).Replace(text)
		}
		samples = append(samples, drift.SampleOf(admit(t, text), card))
	}
	params := drift.PublishedParams()
	params.SimilarityThreshold = 0.6
	alerts := drift.Detect(samples, params)
	if len(alerts) == 0 || len(alerts[0].Analysis.SpecificIndicators) == 0 {
		t.Fatalf("no alert with indicators: %+v", alerts)
	}
	for _, alert := range alerts {
		validate(t, oracle, alert)
		text, err := json.Marshal(alert)
		if err != nil || !bytes.HasSuffix(text, []byte(`"baseline_id":"`+alert.BaselineID.String()+`"}`)) {
			t.Errorf("an alert over a list has members of events: %s, error %v", text, err)
		}
		event := alert
		event.State, event.Revision, event.OpenedAt = schema.AlertOpened, 1, alert.DetectionTimestamp
		event.LastTraceID, event.Count = alert.TraceIDs[len(alert.TraceIDs)-1], len(alert.TraceIDs)
		validate(t, oracle, event)
		event.State, event.Revision, event.ClosedAt = schema.AlertClosed, 3, event.OpenedAt.Add(time.Hour)
		event.Strength, event.Measures, event.Summary = 0.5, []string{"similarity"}, "it searched and now it sells"
		validate(t, oracle, event)
	}
}

// The events of a stream validate, also those of a measure, which no streak of low similarity raises.
func TestEventsOfDriftValidate(t *testing.T) {
	oracle := compile(t, "drift-alert", closed)
	card, params := drift.FactsOf(register(t, fullCard)), drift.DefaultParams()
	var state drift.State
	seen := map[schema.AlertState]int{}
	for i := range 260 {
		text := strings.NewReplacer("12:30:00.25", fmt.Sprintf("%02d:%02d:00", i/60, i%60), `"tr-1"`, fmt.Sprintf(`"tr-%d"`, i+10)).Replace(fullTrace)
		if i >= 60 && i < 80 {
			text = strings.Replace(text, `["honesty"]`, `["honesty", "greed"]`, 1)
		}
		x := drift.SampleOf(admit(t, text), card)
		x.Session, x.SessionEnd = fmt.Sprint(i/6), i%6 == 5
		if alert := state.Step(x, params).Alert; alert != nil {
			validate(t, oracle, *alert)
			seen[alert.State]++
		}
	}
	if seen[schema.AlertOpened] != 1 || seen[schema.AlertUpdated] == 0 || seen[schema.AlertClosed] != 1 {
		t.Errorf("events %v", seen)
	}
}

func TestLoopAlertsValidate(t *testing.T) {
	oracle := compile(t, "loop-alert", closed)
	var acts session.Acts
	var loops session.Loops
	text := strings.NewReplacer(`"session_end": true`, `"session_end": false`).Replace(fullTrace)
	alerts := 0
	for i := range session.ManyRepeats {
		trace := admit(t, strings.Replace(text, "tr-1", fmt.Sprint("tr-", i), 1))
		if finding, found := loops.Add(acts.Of(trace), trace.TraceID); found {
			validate(t, oracle, session.LoopAlert(trace.AgentID, trace.CardID, trace.Context.SessionID, trace.Digest, trace.Timestamp, finding))
			alerts++
		}
	}
	if alerts != 1 {
		t.Errorf("%d alerts", alerts)
	}
}

func TestOwnHandshakeMessagesValidate(t *testing.T) {
	oracle := compile(t, "value-coherence", closed)
	for _, text := range []string{cardRequest, cardResponse, coherenceCheck, coherenceResult, taskResult} {
		m, err := schema.DecodeHandshake([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if m.Type() != schema.MessageCardResponse { // a card may have members of its owner's choice
			validate(t, oracle, m)
		}
	}
	assessor, err := coherence.NewAssessor(aap.DefaultThresholds())
	if err != nil {
		t.Fatal(err)
	}
	refusing := strings.NewReplacer(`["waste"]`, `["honesty"]`, "ac-1", "ac-3").Replace(fullCard)
	check := &schema.CoherenceCheck{RequestID: "r"}
	for _, other := range []string{unifiedCard, refusing} {
		card := register(t, other)
		found := assessor.Check(coherence.Party{Card: register(t, fullCard), CardID: "ac-1"}, coherence.Party{Card: card, CardID: card.CardID},
			coherence.Task{Proposal: schema.Collaboration{AutonomyScope: &schema.AutonomyScope{InitiatorActions: []string{"delete"}}}}, now)
		validate(t, oracle, coherence.Answer(check, found, now))
	}
}

func TestSessionVerdictsValidate(t *testing.T) {
	oracle := compile(t, "session-verdict", closed)
	judge, err := aap.NewJudge(aap.DefaultThresholds())
	if err != nil {
		t.Fatal(err)
	}
	card := aap.Compile(register(t, fullCard))
	part := session.New(session.Head{AgentID: "a", SessionID: "s", Part: 1, LastPart: true, Numbered: true}, nil)
	var verdict schema.Verdict
	for i, status := range []string{"denied", "pending", "pending"} {
		trace := admit(t, strings.NewReplacer("tr-1", fmt.Sprint("tr-", 2*i), `"sequence_number": 7`, fmt.Sprintf(`"sequence_number": %d`, 7+2*i),
			`"approved",`, `"`+status+`",`, `["tr-0"]`, fmt.Sprintf(`["tr-%d", "nowhere"]`, 2*i)).Replace(fullTrace))
		judge.Verify(trace, card, aap.Facts{}, now, &verdict)
		part.Add(trace, &verdict)
	}
	found, _ := part.Finish(nil, now)
	if len(found.Findings) == 0 || len(found.Metadata.Unchecked) == 0 {
		t.Fatalf("no findings: %+v", found)
	}
	validate(t, oracle, found)
	none, _ := session.New(session.Head{AgentID: "a", SessionID: "s", Part: 1}, nil).Finish(nil, now)
	validate(t, oracle, none)
}
