package main

import (
	"slices"
	"testing"

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
		fails    bool
	}{
		{"", 2, []string{"1", "2", "3", "6"}, false},
		{"2", 2, []string{"2", "5", "6", "8"}, false},
		{"5", 1, []string{"5", "8"}, false},
		{"5", 3, []string{"5", "7", "8"}, true},
	} {
		command := driftPinCommand{From: c.from, Sessions: c.sessions}
		sessions, chosen := map[string]bool{}, []aapdrift.Sample(nil)
		var ids []string
		for i := range traces {
			if command.wantsSession(&traces[i], sessions, chosen) {
				chosen, ids = append(chosen, traces[i]), append(ids, traces[i].TraceID)
			}
		}
		if err := command.check(chosen); !slices.Equal(ids, c.want) || (err != nil) != c.fails {
			t.Errorf("%d sessions from %q: traces %q, error %v; want %q, an error: %v", c.sessions, c.from, ids, err, c.want, c.fails)
		}
	}
}
