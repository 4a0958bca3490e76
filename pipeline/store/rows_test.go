package store

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// nasty is a value that every row must store unchanged.
const nasty = "'; DROP TABLE x; -- {x:String} \x00 `a` \\ \n"

// Every column that a row struct writes is a column of its table, in any order.
func TestRowsNameColumns(t *testing.T) {
	s, _ := open(t)
	for table, columns := range map[string][]string{
		"drift_points": pointBlocks.New().(*pointBlock).names(), "drift_alerts": columnsOf[alertRow](), "loop_alerts": columnsOf[loopRow](), "drift_state": columnsOf[DriftState](),
		"drift_baselines": columnsOf[DriftBaseline](), "session_verdicts": columnsOf[sessionVerdictRow](),
		"sessions": columnsOf[Session](), "bundles": columnsOf[Bundle](), "bundle_copies": columnsOf[BundleCopy](), "seal_runs": columnsOf[SealRun](),
		"dead_letters": columnsOf[DeadLetter](), "cards": columnsOf[cardRow](), "card_positions": columnsOf[cardPosition](),
		"ledger":      columnsOf[LedgerEntry](),
		"revocations": columnsOf[revocationRow](), "coherence_results": columnsOf[coherenceRow](), "task_results": columnsOf[taskRow](),
	} {
		live := one[[]string](t, s, "SELECT groupArray(name) FROM system.columns WHERE database = currentDatabase() AND table = '"+
			table+"' AND default_kind IN ('', 'DEFAULT')")
		slices.Sort(columns)
		slices.Sort(live)
		if !slices.Equal(columns, live) {
			t.Errorf("%s: the struct writes\n%v\nthe table has\n%v", table, columns, live)
		}
	}
}

func TestDriftPointsAndAlertsAreIdempotent(t *testing.T) {
	s, _ := open(t)
	similarity := 0.25
	points := []DriftPoint{{
		AgentID: nasty, CardID: "ac-1", TraceID: "tr-1", TraceDigest: schema.DigestOf([]byte("a")), EngineVersion: "0.1.0",
		EventTime: firstEvent, Received: firstReceived, RetainUntil: RetainUntil(firstReceived.Add(1000 * 24 * time.Hour).Truncate(time.Second)),
		StreamCreated: streamCreated, Sequence: 7, SessionID: "s-1",
		Status: "low", Similarity: &similarity, Threshold: 0.3, Streak: 2, Methodology: nasty,
		Mode: "rolling", BaselineID: schema.DigestOf([]byte("baseline")),
	}, {
		AgentID: "b", CardID: "ac-1", TraceID: "tr-2", EventTime: firstEvent, Received: firstReceived, StreamCreated: streamCreated, Sequence: 8,
		Status: "baseline",
	}}
	alert := DriftAlert{
		DriftAlert: schema.DriftAlert{
			AlertID: schema.DigestOf([]byte("alert")), AlertType: "drift_detected", AgentID: nasty, CardID: "ac-1",
			DetectionTimestamp: firstEvent, Recommendation: nasty, TraceIDs: []string{"tr-1", nasty}, EngineVersion: "0.1.0",
			Mode: "pinned", BaselineID: schema.DigestOf([]byte("baseline")), Methodology: "calibrated",
			Analysis: schema.DriftAnalysis{
				SimilarityScore: 0.25, SustainedTraces: 3, Threshold: 0.3, DriftDirection: schema.ValueDrift,
				SpecificIndicators: []schema.Indicator{{Indicator: "undeclared_value_increase", Baseline: 0.1, Current: 0.5, Description: nasty}},
			},
			State: schema.AlertOpened, Revision: 1, OpenedAt: firstEvent, LastTraceID: nasty, Count: 2,
		},
		Received: firstReceived,
	}
	closed := alert
	closed.State, closed.Revision, closed.DetectionTimestamp, closed.ClosedAt = schema.AlertClosed, 2, firstEvent.Add(time.Hour), firstEvent.Add(time.Hour)
	closed.Count, closed.Strength, closed.Measures, closed.Summary = 9, 1.5, []string{"similarity", nasty}, nasty
	for range 2 {
		if err := s.InsertDriftPoints(t.Context(), points); err != nil {
			t.Fatal(err)
		}
		if err := s.InsertDriftAlerts(t.Context(), []DriftAlert{alert, closed}); err != nil {
			t.Fatal(err)
		}
	}
	points[0].Tenant, points[1].Tenant = "default", "default"
	points[0].EventHour, points[1].EventHour = eventHour(firstEvent), eventHour(firstEvent)
	if stored, err := s.LookUpDriftPoints(t.Context(), points); err != nil || len(stored) != 2 ||
		!reflect.DeepEqual(stored[points[0].Key()], &points[0]) || !reflect.DeepEqual(stored[points[1].Key()], &points[1]) {
		t.Errorf("%v\n got %+v\nwant %+v", err, stored, points)
	}
	if alerts, err := s.DriftAlerts(t.Context()); err != nil || !reflect.DeepEqual(alerts, []DriftAlert{closed}) {
		t.Errorf("%v\n got %+v\nwant %+v", err, alerts, closed)
	}
	if events, err := s.DriftAlertEvents(t.Context()); err != nil || !reflect.DeepEqual(events, []DriftAlert{alert, closed}) {
		t.Errorf("%v\n got %+v\nwant %+v\n%+v", err, events, alert, closed)
	}
	loop := LoopAlert{
		LoopAlert: schema.LoopAlert{
			AlertID: schema.DigestOf([]byte("loop")), AlertType: schema.LoopDetected, AgentID: nasty, CardID: "ac-1", SessionID: nasty,
			DetectionTimestamp: firstEvent, TraceDigest: schema.DigestOf([]byte("a")), EngineVersion: "0.1.0",
			Finding: schema.SessionFinding{Type: schema.ActionLoop, Severity: schema.SeverityMedium, Description: nasty, TraceID: nasty, Field: "action.name"},
		},
		Received: firstReceived, StreamCreated: streamCreated, Sequence: 7,
	}
	for range 2 {
		if err := s.InsertLoopAlerts(t.Context(), []LoopAlert{loop}); err != nil {
			t.Fatal(err)
		}
	}
	if loops, err := s.LoopAlerts(t.Context()); err != nil || !reflect.DeepEqual(loops, []LoopAlert{loop}) {
		t.Errorf("%v\n got %+v\nwant %+v", err, loops, loop)
	}
	another := schema.DigestOf([]byte("another"))
	if known, err := s.LookUpLoopAlerts(t.Context(), []schema.Digest{loop.AlertID, another}); err != nil || !known[loop.AlertID] || known[another] {
		t.Errorf("of the loops are stored %v, error %v", known, err)
	}
	third := closed
	third.Revision = 3
	stored, err := s.LookUpDriftAlerts(t.Context(), []DriftAlert{closed, third})
	if err != nil || !stored[closed.Key()] || stored[third.Key()] {
		t.Errorf("stored are %v, error %v", stored, err)
	}
	if c := counts(t, s); c.DriftPoints != 2 || c.DriftAlerts != 1 {
		t.Errorf("%+v", c)
	}
	if !one[bool](t, s, "SELECT similarity IS NULL FROM visible_drift_points WHERE trace_id = 'tr-2'") {
		t.Error("a trace that was not compared has a similarity")
	}
}

func TestNewestDriftStateIsRead(t *testing.T) {
	s, _ := open(t)
	state := func(agent string, version uint64, content string) DriftState {
		return DriftState{
			StreamCreated: streamCreated, Partition: 3, AgentID: agent, CardID: "ac-1", Version: version,
			Applied: version, AppliedAbove: []uint64{version + 2}, LastEvent: firstEvent, State: []byte(content),
		}
	}
	elsewhere := state("a", 99, "another partition")
	elsewhere.Partition = 4
	older := state("a", 98, "another stream")
	older.StreamCreated = streamCreated.Add(-time.Nanosecond)
	beside := state("c", 1, "of the same query")
	beside.Partition = 6
	for _, rows := range [][]DriftState{
		{state("a", 2, "new"), state(nasty, 1, nasty), state("b", 1, "not requested")}, {state("a", 1, "stale")}, {elsewhere, older, beside},
	} {
		if err := s.InsertDriftStates(t.Context(), rows); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.DriftStates(t.Context(), streamCreated, map[int][]SeriesKey{
		3: {{"a", "ac-1"}, {nasty, "ac-1"}, {"b", "ac-2"}, {"absent", "ac-1"}}, 5: {{"a", "ac-1"}}, 6: {{"b", "ac-1"}, {"c", "ac-1"}}})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got, func(a, b DriftState) int { return strings.Compare(a.AgentID, b.AgentID) })
	want := []DriftState{state(nasty, 1, nasty), state("a", 2, "new"), beside}
	for i := range want {
		want[i].Tenant = "default"
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
	got, err = s.DriftStatesOf(t.Context(), streamCreated, map[int][]string{3: {"a", "absent"}, 5: {"a"}, 6: {"b", "c"}})
	slices.SortFunc(got, func(a, b DriftState) int { return strings.Compare(a.AgentID, b.AgentID) })
	if err != nil || !reflect.DeepEqual(got, want[1:]) {
		t.Errorf("error %v\n got %+v\nwant %+v", err, got, want[1:])
	}
}

func TestSealingRows(t *testing.T) {
	s, _ := open(t)
	bundle := Bundle{
		AgentID: "agent", SessionID: nasty, Part: 1, SHA256: schema.DigestOf([]byte("bundle")), LastPart: true, Path: "a/b.tar.gz",
		Bytes: 10, ActionCount: 4, TraceCount: 2, Redactions: 1, FirstEvent: firstEvent, LastEvent: firstEvent.Add(time.Second),
		FirstSequence: 1, LastSequence: 2, TraceIDs: []string{"tr-1", "tr-2"}, ChainHash: "ab", KeyID: "k", Reason: "ended", ExportedAt: firstReceived,
	}
	for range 2 {
		if err := s.InsertBundles(t.Context(), []Bundle{bundle}); err != nil {
			t.Fatal(err)
		}
		if err := s.InsertSealRuns(t.Context(), []SealRun{{
			AgentID: "agent", SessionID: nasty, RunID: "r1", StartedAt: firstReceived, FinishedAt: firstReceived,
			Outcome: "held", Reason: nasty, Traces: 2, Cut: 2, Changed: []string{nasty}, Missing: []string{"00"}, Foreign: []string{"x"},
		}}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Bundles(t.Context(), "agent", nasty)
	bundle.Tenant = "default"
	if err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], bundle) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, bundle)
	}
	if n := one[uint64](t, s, "SELECT count() FROM seal_runs FINAL"); n != 1 {
		t.Errorf("%d seal runs, want 1", n)
	}
	for version, status := range []string{SessionOpen, SessionHeld, SessionSealed} {
		session := Session{AgentID: "agent", SessionID: nasty, Version: uint64(3 - version), Status: status, UpdatedAt: firstReceived}
		if err := s.InsertSessions(t.Context(), []Session{session}); err != nil {
			t.Fatal(err)
		}
	}
	if status := one[string](t, s, "SELECT status FROM visible_sessions"); status != SessionOpen {
		t.Errorf("the session is %s, want open, the status of its highest version", status)
	}
}

func TestDeadLetterRow(t *testing.T) {
	s, _ := open(t)
	letter := DeadLetter{
		Stage: "verifier", OriginCreated: streamCreated, OriginSequence: 9, Received: firstReceived, Subject: "traces.3.a",
		AgentID: "a", Reason: "invalid_json", Raw: []byte(nasty),
	}
	letter.SetFaults([]schema.Fault{{Pointer: "/a", Message: nasty}, {Pointer: "/b", Message: "y"}})
	for range 2 {
		if err := s.InsertDeadLetters(t.Context(), []DeadLetter{letter}); err != nil {
			t.Fatal(err)
		}
	}
	if raw := one[string](t, s, "SELECT raw FROM dead_letters FINAL WHERE faults.pointer[2] = '/b'"); raw != nasty {
		t.Errorf("%q", raw)
	}
	if c := counts(t, s); c.DeadLetters != 1 {
		t.Errorf("%+v", c)
	}
}

func TestCardRow(t *testing.T) {
	s, _ := open(t)
	card := &schema.Card{
		Shape: schema.ShapeEnvelope, Version: "0.1.0", CardID: "ac-1", AgentID: nasty, IssuedAt: firstEvent, ExpiresAt: firstReceived,
		Principal: schema.Principal{Type: "human", Identifier: "i", Relationship: "advisory", EscalationContact: "c"},
		Values: schema.Values{
			Declared: []string{"honesty", nasty}, ConflictsWith: []string{"x"}, Hierarchy: "weighted",
			Definitions: []schema.ValueDefinition{{ID: nasty, Name: "n", Description: "d", Priority: 2, HasPriority: true}, {ID: "q"}},
		},
		Autonomy: schema.Autonomy{
			BoundedActions: []string{"search"}, ForbiddenActions: []string{"steal"},
			EscalationTriggers: []schema.Trigger{{Condition: `a > 1`, Action: schema.TriggerDeny, Reason: "r"}},
			MaxAutonomousValue: schema.MaxValue{Present: true, Amount: 100, Currency: "USD"},
		},
		Audit: schema.Audit{TraceFormat: "ap-trace-v1", RetentionDays: 90, StorageType: "local", Queryable: true, QueryEndpoint: "q", TamperEvidence: "signed"},
		Raw:   []byte(`{"extensions":{"a2a":{"x":1}}}`), Digest: schema.DigestOf([]byte("jcs")),
	}
	for range 2 {
		if err := s.InsertCards(t.Context(), firstReceived, []*schema.Card{card}); err != nil {
			t.Fatal(err)
		}
	}
	for expression, want := range map[string]string{
		"agent_id": nasty, "value_definitions[1].1": nasty, "value_definitions[1].4": "2", "value_definitions[2].4 IS NULL": "1",
		"escalation_triggers[1].2": "deny", "max_value_amount": "100", "retention_days": "90", "extensions": `{"a2a":{"x":1}}`,
		"toUnixTimestamp64Nano(assumeNotNull(expires_at))": fmt.Sprint(firstReceived.UnixNano()), "queryable": "true", "tamper_evidence": "signed",
	} {
		if got := one[string](t, s, "SELECT toString("+expression+") FROM visible_cards"); got != want {
			t.Errorf("%s is %q, want %q", expression, got, want)
		}
	}
}
