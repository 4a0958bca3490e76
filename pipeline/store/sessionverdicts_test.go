package store

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/schema"
)

func TestSessionVerdictRoundTrip(t *testing.T) {
	s, _ := open(t)
	v := &schema.SessionVerdict{
		Verified: false, RecommendedAction: schema.Deny, AgentID: "a", SessionID: "s", Part: 2, LastPart: true,
		Timestamp: time.Date(2026, 2, 1, 0, 0, 7, 0, time.UTC),
		Traces: schema.SessionTraces{Total: 7, Verified: 5, CardUnknown: 1,
			Violations: map[string]int64{schema.UndeclaredValue: 3}, Findings: map[string]int64{schema.Backdated: 1}},
		Findings: []schema.SessionFinding{
			{Type: schema.DeniedButActed, Severity: schema.SeverityCritical, Description: "d", TraceID: "tr-1", Field: "action.type"},
			{Type: schema.TraceGap, Severity: schema.SeverityMedium, Description: "g"},
		},
		FindingCounts: map[string]int64{schema.TraceGap: 1, schema.DeniedButActed: 1},
		Similarity:    schema.SessionSimilarity{Mean: 0.25, Min: 0.125, Trend: -0.5},
		Metadata: schema.SessionMetadata{AlgorithmVersion: "1", EngineVersion: "e", Profile: "spec",
			ChecksPerformed: []string{"turns"}, Unchecked: []string{"numbers"}},
	}
	other := *v
	other.AgentID = "b"
	for range 2 { // duplicates collapse
		if err := s.InsertSessionVerdicts(t.Context(), []*schema.SessionVerdict{v, &other}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.SessionVerdicts(t.Context(), "a", "s")
	if err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], v) {
		t.Fatalf("got %s\n(%v), want\n%s", line(t, got), err, line(t, v))
	}
	if n := one[uint64](t, s, "SELECT count() FROM session_findings WHERE agent_id = 'a' AND severity IN ('CRITICAL', 'MEDIUM')"); n != 2 {
		t.Errorf("view session_findings has %d rows", n)
	}
	if n := one[uint64](t, s, "SELECT sum(finding_counts['TRACE_GAP']) FROM visible_session_verdicts"); n != 2 {
		t.Errorf("%d gaps are counted", n)
	}
}

func line(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// elsewhere stores a numbered trace.
func elsewhere(t *testing.T, b *TraceBatch, agent, sessionID, id string, number, minute int) {
	t.Helper()
	raw := fmt.Sprintf(`{"trace_id":%q,"agent_id":%q,"card_id":"c","timestamp":"2026-02-01T%02d:%02d:00Z","action":{"type":"execute","name":"n","category":"bounded"},`+
		`"decision":{"alternatives_considered":[{"option_id":"o","description":"d"}],"selected":"o","selection_reasoning":"r","values_applied":["v"]},`+
		`"context":{"session_id":%q,"metadata":{"sequence_number":%d}}}`, id, agent, minute/60, minute%60, sessionID, number)
	trace, err := schema.Admit("", []byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	m := meta(trace, uint64(1+b.Len()))
	m.SessionID = sessionID
	b.Add(trace, m, wholeVerdict(trace))
}

func TestQuestionsAboutOtherSessions(t *testing.T) {
	s, _ := open(t)
	b := s.NewTraceBatch()
	elsewhere(t, b, "a", "s", "a-1", 1, 60)
	elsewhere(t, b, "a", "o", "a-2", 2, 61)
	elsewhere(t, b, "a", "o", "a-9", 9, 61)
	elsewhere(t, b, "a", "o", "a-3", 3, 300)
	elsewhere(t, b, "b", "o", "b-3", 3, 62)
	elsewhere(t, b, "b", "o", "a-1", 4, 62)
	insert(t, s, b)
	at := func(minute int) time.Time { return time.Date(2026, 2, 1, 0, minute, 0, 0, time.UTC) }
	ask := func(agent string, least, greatest uint64, from, to time.Time) NumberQuestion {
		return NumberQuestion{AgentID: agent, NumberQuestion: session.NumberQuestion{Least: least, Greatest: greatest, From: from, To: to}}
	}
	got, err := s.NumberedTraces(t.Context(), []NumberQuestion{
		ask("a", 1, 4, at(60), at(119)), ask("b", 1, 3, at(0), at(1000)), ask("nobody", 0, 1<<63, time.Time{}, at(1<<20)), ask("a", 2, 9, at(60), at(299)),
	})
	want := [][]session.NumberedTrace{
		{{SessionID: "s", Number: 1, At: at(60)}, {SessionID: "o", Number: 2, At: at(61)}},
		{{SessionID: "o", Number: 3, At: at(62)}},
		nil,
		{{SessionID: "o", Number: 2, At: at(61)}, {SessionID: "o", Number: 9, At: at(61)}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("numbered traces %+v (%v), want %+v", got, err, want)
	}
	before := func(agent, own string, greatest uint64, from, to time.Time) NumberQuestion {
		return NumberQuestion{AgentID: agent, SessionID: own, NumberQuestion: session.NumberQuestion{Greatest: greatest, From: from, To: to}}
	}
	preceding, err := s.PrecedingNumbers(t.Context(), []NumberQuestion{
		before("a", "new", 8, at(0), at(61)), before("a", "o", 8, at(0), at(500)), before("a", "new", 8, at(0), at(500)),
		before("a", "new", 8, at(240), at(250)), before("nobody", "x", 8, at(0), at(500)),
	})
	wantPreceding := []*session.NumberedTrace{
		{SessionID: "o", Number: 2, At: at(61)}, {SessionID: "s", Number: 1, At: at(60)}, {SessionID: "o", Number: 3, At: at(300)}, nil, nil,
	}
	if err != nil || !reflect.DeepEqual(preceding, wantPreceding) {
		t.Errorf("preceding numbers %+v (%v)", preceding, err)
	}
	prior, err := s.PriorTraces(t.Context(), []string{"a-1", "a-3", "nobody"})
	agents := map[string]time.Time{}
	for _, p := range prior {
		agents[p.TraceID+" "+p.AgentID] = p.At
	}
	if wanted := map[string]time.Time{"a-1 a": at(60), "a-1 b": at(62), "a-3 a": at(300)}; err != nil || !reflect.DeepEqual(agents, wanted) {
		t.Errorf("prior traces %v (%v), want %v", agents, err, wanted)
	}
	long := make([]string, 1000) // as many as one query asks for, with ids of maximum length
	for i := range long {
		long[i] = fmt.Sprintf("%0*d", schema.MaxIDBytes, i)
	}
	if prior, err := s.PriorTraces(t.Context(), append(long, nasty, "a-1")); err != nil || len(prior) != 2 {
		t.Errorf("the look-up of the longest ids found %+v (%v)", prior, err)
	}
}
