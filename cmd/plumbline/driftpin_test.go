package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
)

// Whole sessions are pinned that begin with the named trace or later, under its card, also where
// they are entangled; a session that began before is not.
func TestWholeSessionsArePinned(t *testing.T) {
	traces := []aapdrift.Sample{
		{TraceID: "1", Session: "a", CardID: "x"}, {TraceID: "2", Session: "b", CardID: "x"}, {TraceID: "3", Session: "a", CardID: "x"},
		{TraceID: "4", Session: "c", CardID: "y"}, {TraceID: "5", Session: "d", CardID: "x"}, {TraceID: "6", Session: "b", CardID: "x"},
		{TraceID: "7", Session: "e", CardID: "x"}, {TraceID: "8", Session: "d", CardID: "x"},
	}
	for _, c := range []struct {
		from     string
		sessions int
		want     []string
		says     string
	}{
		{"", 2, []string{"1", "2", "3", "6"}, ""},
		{"2", 2, []string{"2", "5", "6", "8"}, ""},
		{"5", 1, []string{"5", "8"}, ""},
		{"5", 3, []string{"5", "7", "8"}, `has 2 sessions under card "x" that begin with trace "5" or later, not 3: give --sessions 2, or begin earlier`},
		{"", 9, []string{"1", "2", "3", "5", "6", "7", "8"}, `has 4 sessions under card "x", not 9: give --sessions 4`},
		{"3", 1, nil, `no trace "3" (of tenant t) with which a session begins`},
	} {
		chosen := choice{driftPinCommand: &driftPinCommand{Agent: "agent", From: c.from, Sessions: &c.sessions}, known: true, sessions: map[string]*pinnedSession{}}
		chosen.Tenant = "t"
		for i := range traces {
			chosen.take(&traces[i])
		}
		var ids []string
		for i := range chosen.traces {
			ids = append(ids, chosen.traces[i].TraceID)
		}
		err := chosen.check()
		if !slices.Equal(ids, c.want) || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%d sessions from %q: traces %q, error %v; want %q, %q", c.sessions, c.from, ids, err, c.want, c.says)
		}
	}
}

// A taken session may go on unless a trace marks its end, or the agent has acted half an hour without it.
func TestRunningSessionsOfAPin(t *testing.T) {
	sessions := 3
	chosen := choice{driftPinCommand: &driftPinCommand{Sessions: &sessions}, sessions: map[string]*pinnedSession{}}
	began := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	for _, x := range []aapdrift.Sample{
		{TraceID: "1", Session: "idle", EventTime: began}, {TraceID: "2", Session: "ended", SessionEnd: true, EventTime: began.Add(time.Hour)},
		{TraceID: "3", Session: "runs", EventTime: began.Add(time.Hour)}, {TraceID: "4", Session: "not taken", EventTime: began.Add(time.Hour)},
	} {
		chosen.take(&x)
	}
	if running := chosen.running(); !slices.Equal(running, []string{"runs"}) {
		t.Errorf("%q may go on", running)
	}
}
