package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// A session is unsealed if one of its records within the range is in no bundle, or if it is held,
// also if none of its records is stored. Of two records with one trace_id, each must be in a bundle.
func TestUnsealedSessions(t *testing.T) {
	s, _ := open(t)
	b := s.NewTraceBatch()
	for i, record := range []struct{ id, agent, session string }{
		{"t1", "a", "sealed"}, {"t2", "a", "half"}, {"t3", "a", "half"}, {"t4", "a", "held"}, {"t5", "b", "other"}, {"t1", "a", "same id"},
		{"t6", "a", "conflict"}, {"t6", "a", "conflict"}, // one of these two is in a bundle
	} {
		trace := simple(t, record.id, record.agent, record.session, fmt.Sprint("reason ", i))
		b.Add(trace, meta(trace, uint64(i+1)), wholeVerdict(trace))
	}
	insert(t, s, b)
	bundle := func(session string, part uint32, traces ...string) Bundle {
		return Bundle{AgentID: "a", SessionID: session, Part: part, SHA256: schema.DigestOf([]byte(session)), TraceIDs: traces, FirstEvent: firstEvent, LastEvent: firstEvent, ExportedAt: firstReceived}
	}
	if err := s.InsertBundles(t.Context(), []Bundle{bundle("sealed", 1, "t1"), bundle("half", 1, "t2"), bundle("conflict", 1, "t6")}); err != nil {
		t.Fatal(err)
	}
	held := func(session string) Session {
		return Session{AgentID: "a", SessionID: session, Version: 1, Status: SessionHeld, Reason: "they differ", FirstEvent: firstEvent, LastEvent: firstEvent, UpdatedAt: firstReceived}
	}
	if err := s.InsertSessions(t.Context(), []Session{held("held"), held("lost"), {AgentID: "a", SessionID: "sealed", Version: 1, Status: SessionSealed, FirstEvent: firstEvent, LastEvent: firstEvent, UpdatedAt: firstReceived}}); err != nil {
		t.Fatal(err)
	}
	after := firstEvent.Add(time.Nanosecond)
	for name, c := range map[string]struct {
		agent    string
		from, to time.Time
		want     []string
	}{
		"everything":     {"", time.Time{}, time.Time{}, []string{"a conflict 1 ", "a half 1 ", "a held 1 they differ", "a lost 0 they differ", "a same id 1 ", "b other 1 "}},
		"one agent":      {"b", time.Time{}, time.Time{}, []string{"b other 1 "}},
		"its moment":     {"a", firstEvent, after, []string{"a conflict 1 ", "a half 1 ", "a held 1 they differ", "a lost 0 they differ", "a same id 1 "}},
		"up to it":       {"", time.Time{}, firstEvent, nil},
		"after it":       {"", after, time.Time{}, nil},
		"another agent":  {"c", time.Time{}, time.Time{}, nil},
		"the whole time": {"b", schema.EarliestTime.Add(-time.Hour), schema.LatestTime.Add(time.Hour), []string{"b other 1 "}},
	} {
		found, err := s.UnsealedSessions(t.Context(), c.agent, c.from, c.to)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []string
		for _, u := range found {
			got = append(got, fmt.Sprintf("%s %s %d %s", u.AgentID, u.SessionID, u.Traces, u.Held))
			if !u.FirstEvent.Equal(firstEvent) || !u.LastEvent.Equal(firstEvent) {
				t.Errorf("%s: %s from %s to %s", name, u.SessionID, u.FirstEvent, u.LastEvent)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
