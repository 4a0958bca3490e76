package store

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// What was inserted for a series is read back, without rows of other series.
func TestDriftReport(t *testing.T) {
	s, _ := open(t)
	type series struct{ agent, card string }
	for i, c := range []series{{nasty, "ac-1"}, {nasty, "ac-2"}, {"other", "ac-1"}} {
		insertCourse(t, s, c.agent, c.card, i)
		insertCourse(t, s, c.agent, c.card, i) // once more
	}
	older := DriftState{StreamCreated: streamCreated.Add(-time.Hour), AgentID: nasty, CardID: "ac-1", Version: 99, LastEvent: firstEvent, State: []byte("older stream")}
	if err := s.InsertDriftStates(t.Context(), []DriftState{older}); err != nil {
		t.Fatal(err)
	}
	reports, err := s.DriftOf(t.Context(), nasty, "", 2)
	if err != nil || len(reports) != 2 {
		t.Fatalf("%d reports, error %v, want 2", len(reports), err)
	}
	one, err := s.DriftOf(t.Context(), nasty, "ac-1", 10)
	if err != nil || len(one) != 1 {
		t.Fatalf("%d reports, error %v, want 1", len(one), err)
	}
	r := one[0]
	if string(r.State.State) != "state of ac-1" || len(r.Baselines) != 1 || len(r.Points) != 3 || len(r.Alerts) != 1 {
		t.Fatalf("report %+v", r)
	}
	if want := baselineRow(nasty, "ac-1"); !reflect.DeepEqual(withoutTenant(r.Baselines[0]), want) {
		t.Errorf("baseline %+v, want %+v", r.Baselines[0], want)
	}
	for i, want := range []string{"tr-0", "tr-2", "tr-1"} { // tr-2 is dated ahead: it keeps its position of arrival
		if r.Points[i].TraceID != want || r.Points[i].Mode != "first" || r.Points[i].BaselineID.IsZero() {
			t.Errorf("point %d is %+v, want %s", i, r.Points[i], want)
		}
	}
	if newest := reports[0].Points; len(newest) != 2 || newest[1].TraceID != "tr-1" {
		t.Errorf("the newest two points: %+v", newest)
	}
	if none, err := s.DriftOf(t.Context(), "nobody", "", 10); err != nil || len(none) != 0 {
		t.Errorf("reports on an unknown agent: %+v, %v", none, err)
	}
}

func withoutTenant(b DriftBaseline) DriftBaseline {
	b.Tenant = ""
	return b
}

func baselineRow(agent, card string) DriftBaseline {
	return DriftBaseline{
		AgentID: agent, CardID: card, BaselineID: schema.DigestOf([]byte("baseline " + card)), Mode: "first", EngineVersion: "e",
		FormedAt: firstEvent, Received: firstReceived, Traces: 2, TraceIDs: []string{"tr-0", nasty}, TraceDigests: []string{"00", "01"},
		Features: []string{"action:execute", nasty}, Weights: []float64{1, 0.5}, EscalationRate: 0.5, Texts: 1, SessionIDs: []string{nasty},
	}
}

func insertCourse(t *testing.T, s *Store, agent, card string, partition int) {
	t.Helper()
	var points []DriftPoint
	for i, at := range []time.Time{firstEvent, firstReceived.Add(2 * time.Second), firstEvent.Add(time.Hour)} {
		points = append(points, DriftPoint{
			AgentID: agent, CardID: card, TraceID: fmt.Sprintf("tr-%d", i), TraceDigest: schema.DigestOf([]byte{byte(i)}),
			EventTime: at, Received: firstReceived.Add(time.Duration(3-i) * time.Second), Sequence: uint64(i), StreamCreated: streamCreated,
			Mode: "first", BaselineID: schema.DigestOf([]byte("baseline")), Status: "normal",
		})
	}
	alert := DriftAlert{Received: firstReceived, DriftAlert: schema.DriftAlert{
		AlertID: schema.DigestOf([]byte(agent + card)), AgentID: agent, CardID: card, DetectionTimestamp: firstEvent, OpenedAt: firstEvent, Revision: 1,
	}}
	state := DriftState{
		StreamCreated: streamCreated, Partition: uint16(partition), AgentID: agent, CardID: card, Version: 1,
		LastEvent: firstEvent, State: []byte("state of " + card),
	}
	for _, err := range []error{
		s.InsertDriftPoints(t.Context(), points), s.InsertDriftAlerts(t.Context(), []DriftAlert{alert}),
		s.InsertDriftStates(t.Context(), []DriftState{state}), s.InsertDriftBaselines(t.Context(), []DriftBaseline{baselineRow(agent, card)}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// An agent's traces are returned in order of their own times, each id once. The cards that they
// name are returned as well.
func TestAgentTraces(t *testing.T) {
	s, _ := open(t)
	b := s.NewTraceBatch()
	for _, n := range []int{3, 1, 2} {
		trace := numbered(t, n)
		b.Add(trace, meta(trace, uint64(n)), wholeVerdict(trace))
	}
	conflicting := admit(t, fmt.Sprintf(wholeTrace, 2, firstEvent.Format(time.RFC3339Nano)))
	b.Add(conflicting, meta(conflicting, 9), wholeVerdict(conflicting))
	other := simple(t, "tr-1", "another", "s", "r")
	b.Add(other, meta(other, 10), wholeVerdict(other))
	insert(t, s, b)
	card := &schema.Card{CardID: "ac-1", AgentID: "whoever", Raw: []byte(`{"card_id":"ac-1"}`)}
	unnamed := &schema.Card{CardID: "ac-2", AgentID: "did:web:agent.example", Raw: []byte(`{}`)}
	if err := s.InsertCards(t.Context(), firstReceived, []*schema.Card{card, unnamed}); err != nil {
		t.Fatal(err)
	}
	if cards, err := s.CardsOf(t.Context(), "did:web:agent.example"); err != nil || len(cards) != 1 || string(cards["ac-1"]) != string(card.Raw) {
		t.Errorf("cards %q, %v", cards, err)
	}
	for card, want := range map[string]string{"": "[tr-1 tr-2 tr-3]", "ac-1": "[tr-1 tr-2 tr-3]", "ac-9": "[]"} {
		ids := []string{}
		for trace, err := range s.AgentTraces(t.Context(), "did:web:agent.example", card) {
			if err != nil {
				t.Fatal(err)
			}
			if trace.Digest != schema.DigestOf(trace.Raw) || trace.Digest == conflicting.Digest {
				t.Errorf("trace %s is not the one that was received first", trace.TraceID)
			}
			ids = append(ids, trace.TraceID)
		}
		if fmt.Sprint(ids) != want {
			t.Errorf("card %q: traces %v, want %s", card, ids, want)
		}
	}
}

// The first point of a trace is that of its earliest message, whichever engine measured it; points of another stream do not
// count.
func TestFirstMeasured(t *testing.T) {
	s, _ := open(t)
	first := DriftPoint{
		AgentID: "a", CardID: "ac-1", TraceID: "tr-1", TraceDigest: schema.DigestOf([]byte("a")), EngineVersion: "1",
		EventTime: firstEvent, Received: firstReceived, StreamCreated: streamCreated, Sequence: 7, Status: "normal",
	}
	again := first
	again.EngineVersion, again.Sequence, again.Received = "2", 9, firstReceived.Add(time.Hour)
	if err := s.InsertDriftPoints(t.Context(), []DriftPoint{again, first}); err != nil {
		t.Fatal(err)
	}
	asked := []TraceTime{{first.TraceDigest, firstEvent}, {schema.DigestOf([]byte("absent")), firstEvent.Add(48 * time.Hour)}}
	if found, err := s.FirstMeasured(t.Context(), streamCreated, asked); err != nil || len(found) != 1 || found[first.TraceDigest] != 7 {
		t.Errorf("the first points are of messages %v, error %v; want 7", found, err)
	}
	if found, err := s.FirstMeasured(t.Context(), streamCreated.Add(time.Second), asked); err != nil || len(found) != 0 {
		t.Errorf("in another stream the first points are of messages %v, error %v; want none", found, err)
	}
}
