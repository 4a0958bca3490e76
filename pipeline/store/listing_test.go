package store

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema"
)

func TestTraceDigestsOfVisibleTraces(t *testing.T) {
	s, _ := open(t)
	a, b := numbered(t, 1), numbered(t, 2)
	insert(t, s, batchOf(s, a, b))
	insert(t, s, batchOf(s, b)) // a copy, which no reader sees
	got, err := s.TraceDigests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || !slices.Contains(got, a.Digest) || !slices.Contains(got, b.Digest) {
		t.Errorf("digests are %v, want those of two traces", got)
	}
}

func TestDeadLettersAreReadAsWritten(t *testing.T) {
	s, _ := open(t)
	letter := DeadLetter{
		Stage: "ingest", Received: time.Date(2026, 11, 20, 12, 0, 0, 5, time.UTC), RetainUntil: RetainUntil(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)),
		OriginCreated: time.Unix(0, 0).UTC(), AgentID: "a", Reason: schema.ReasonInvalidJSON, Raw: []byte("{\xff"),
	}
	letter.SetFaults([]schema.Fault{{Pointer: "/x", Message: "broken"}})
	written := []DeadLetter{letter}
	if err := s.InsertDeadLetters(t.Context(), written); err != nil {
		t.Fatal(err)
	}
	read, err := s.DeadLetters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read, written) {
		t.Errorf("dead letters\n got %+v\nwant %+v", read, written)
	}
}
