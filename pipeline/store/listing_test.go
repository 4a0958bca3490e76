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
	insert(t, s, batchOf(s, b)) // a duplicate, which no reader sees
	got, err := s.TraceDigests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || !slices.Contains(got, a.Digest) || !slices.Contains(got, b.Digest) {
		t.Errorf("got digests %v, want those of two traces", got)
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

// A mark covers the letters with its bytes that were received before it, and changes none.
func TestMarksOnDeadLetters(t *testing.T) {
	s, _ := open(t)
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var letters []DeadLetter
	fault := []schema.Fault{{Pointer: "/x", Message: "broken"}}
	for i, raw := range []string{"dropped", "came again", "untouched"} {
		letters = append(letters, DeadLetter{Stage: "ingest", Received: at.Add(time.Duration(i) * time.Second), OriginCreated: time.Unix(0, 0).UTC(),
			RetainUntil: RetainUntil(at.AddDate(9, 0, 0)), Reason: schema.ReasonInvalidJSON, Raw: []byte(raw)})
		letters[i].SetFaults(fault)
	}
	if err := s.InsertDeadLetters(t.Context(), letters); err != nil {
		t.Fatal(err)
	}
	marks := []LetterMark{
		{Digest: letters[0].Digest, MarkedAt: at.Add(time.Minute), Mark: "replayed", MarkedBy: "ann"},
		{Digest: letters[0].Digest, MarkedAt: at.Add(time.Hour), Mark: "dropped", MarkedBy: "bob", Note: "n"},
		{Digest: letters[1].Digest, MarkedAt: at.Add(-time.Hour), Mark: "dropped", MarkedBy: "bob"},
	}
	for range 2 { // duplicates collapse
		if err := s.InsertLetterMarks(t.Context(), marks); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.MarkedLetters(t.Context(), "", true)
	if err != nil || len(got) != 3 {
		t.Fatal(got, err)
	}
	for i := range got {
		if !reflect.DeepEqual(got[i].DeadLetter, letters[i]) {
			t.Errorf("letter %d\n got %+v\nwant %+v", i, got[i].DeadLetter, letters[i])
		}
		if want := i == 0; got[i].Handled() != want {
			t.Errorf("letter %d: handled is %t: %+v", i, got[i].Handled(), got[i])
		}
	}
	if got[0].Mark != "dropped" || got[0].MarkedBy != "bob" || got[0].Note != "n" || !got[0].MarkedAt.Equal(at.Add(time.Hour)) {
		t.Errorf("%+v", got[0])
	}
	if open, err := s.OpenLetters(t.Context()); err != nil || open != 2 {
		t.Errorf("%d letters are open, want 2; error %v", open, err)
	}
	one, err := s.MarkedLetters(t.Context(), letters[2].Digest.String()[:12], false)
	if err != nil || len(one) != 1 || len(one[0].Raw) != 0 || one[0].Digest != letters[2].Digest {
		t.Errorf("%+v, %v", one, err)
	}
}
