package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/database"
	"github.com/plumbline/plumbline/schema"
)

// arrived returns a batch of one trace that the broker took at the given time, under its own
// sequence: a message repeated by the publisher, not a redelivery.
func arrived(s *Store, t *schema.Trace, sequence uint64, at time.Time) *TraceBatch {
	b := s.NewTraceBatch()
	m := meta(t, sequence)
	m.Received = at
	b.Add(t, m, cleanVerdict(t))
	return b
}

func TestEarliestOfDuplicatesIsKept(t *testing.T) {
	_, dsn := open(t)
	s := openPinned(t, dsn, "do_not_merge_across_partitions_select_final=1")
	for name, months := range map[string]int{"in one month": 0, "over a month's end": 1} {
		for order, first := range map[string]int{"in order": 0, "late copy first": 1} {
			t.Run(name+", "+order, func(t *testing.T) {
				trace := simple(t, "tr-1", "agent "+name+", "+order, "s", "because")
				times := []time.Time{firstReceived, firstReceived.Add(time.Hour).AddDate(0, months, 0)}
				insert(t, s, arrived(s, trace, uint64(first+1), times[first]))
				insert(t, s, arrived(s, trace, uint64(2-first), times[1-first]))
				got := sessionOf(t, s, trace)
				if len(got) != 1 || got[0].Sequence != 1 || !got[0].Received.Equal(firstReceived) {
					t.Errorf("%d rows are visible, the first with sequence %d, received %v", len(got), got[0].Sequence, got[0].Received)
				}
			})
		}
	}
	if c := counts(t, s); c.Traces != 4 || c.Verdicts != 4 || c.Conflicts != 0 {
		t.Errorf("%+v, want 4 traces", c)
	}
}

func TestConflictsAreKeptAndShown(t *testing.T) {
	s, _ := open(t)
	first := simple(t, "tr-1", "agent", "s", "one reason")
	second := simple(t, "tr-1", "agent", "s", "another reason")
	other := simple(t, "tr-1", "other agent", "s", "one reason")
	insert(t, s, batchOf(s, first, second, other))
	conflicts, err := s.Conflicts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(conflicts) != 1 || conflicts[0].AgentID != "agent" || conflicts[0].TraceID != "tr-1" ||
		fmt.Sprint(conflicts[0].Digests) != fmt.Sprint([]string{first.Digest.String(), second.Digest.String()}) {
		t.Errorf("%+v", conflicts)
	}
	if c := counts(t, s); c.Traces != 3 || c.Verdicts != 3 || c.Conflicts != 1 {
		t.Errorf("%+v", c)
	}
}

func TestRedeliveredRowsAreNotSentAgain(t *testing.T) {
	s, _ := open(t)
	stored, fresh := numbered(t, 1), numbered(t, 2)
	insert(t, s, batchOf(s, stored))
	b := s.NewTraceBatch()
	for i, trace := range []*schema.Trace{stored, fresh} {
		m := meta(trace, uint64(i+1))
		m.Redelivered = true
		b.Add(trace, m, cleanVerdict(trace))
	}
	third := numbered(t, 3)
	b.Add(third, meta(third, 3), cleanVerdict(third))
	insert(t, s, b)
	if c := counts(t, s); c.Traces != 3 || c.TraceRows != 3 || c.Verdicts != 3 {
		t.Errorf("%+v, want 3 traces in 3 rows", c)
	}
	if n := one[uint64](t, s, "SELECT count() FROM verdicts"); n != 3 {
		t.Errorf("%d verdict rows, want 3", n)
	}
}

// A crash may store a trace without its verdict. The redelivery of the message adds the verdict.
func TestRedeliveryCompletesHalfABatch(t *testing.T) {
	s, _ := open(t)
	trace := numbered(t, 1)
	half := batchOf(s, trace)
	if err := s.insert(t.Context(), half.traces); err != nil {
		t.Fatal(err)
	}
	insert(t, s, redelivered(s, trace, meta(trace, 1), cleanVerdict(trace)))
	if c := counts(t, s); c.TraceRows != 1 || c.Verdicts != 1 {
		t.Errorf("%+v", c)
	}
}

// An equal sequence of another stream or of another record is not the same row.
func TestLookUpComparesStreamAndDigest(t *testing.T) {
	s, _ := open(t)
	insert(t, s, batchOf(s, numbered(t, 1)))
	elsewhere, other := numbered(t, 1), simple(t, "tr-9", "agent", "s", "other")
	m := meta(elsewhere, 1)
	m.StreamCreated = m.StreamCreated.Add(time.Nanosecond)
	insert(t, s, redelivered(s, elsewhere, m, cleanVerdict(elsewhere)))
	insert(t, s, redelivered(s, other, meta(other, 1), cleanVerdict(other)))
	if c := counts(t, s); c.TraceRows != 3 || c.Traces != 2 {
		t.Errorf("%+v, want 3 rows of 2 traces", c)
	}
}

func TestBadRowsAreReportedAndTheRestIsStored(t *testing.T) {
	s, dsn := open(t)
	for _, server := range servers(t, dsn) {
		exec(t, server, "ALTER TABLE "+local("traces")+" ADD CONSTRAINT acceptable CHECK NOT startsWith(trace_id, 'bad')")
	}
	var traces []*schema.Trace
	for i := range 100 {
		name := "good"
		if i == 3 || i == 57 || i == 99 {
			name = "bad"
		}
		traces = append(traces, simple(t, fmt.Sprintf("%s-%d", name, i), "agent", "s", "because"))
	}
	b := batchOf(s, traces...)
	for range 2 { // the second call returns the same and stores nothing twice
		bad, ok := errors.AsType[*BatchError](s.InsertTraces(t.Context(), b))
		if !ok || len(bad.Rows) != 3 || bad.Rows[0].Index != 3 || bad.Rows[1].Index != 57 || bad.Rows[2].Index != 99 {
			t.Fatalf("%v", bad)
		}
		if database.Classify(bad.Rows[0].Err) != database.Split {
			t.Errorf("reason: %v", bad.Rows[0].Err)
		}
		if c := counts(t, s); c.Traces != 97 || c.TraceRows != 97 {
			t.Errorf("%+v, want 97 traces in 97 rows", c)
		}
	}
}

// A batch with more months than one block may touch has no bad row. It is halved all the same.
func TestTooManyPartitionsAreSplit(t *testing.T) {
	s, _ := open(t)
	b := s.NewTraceBatch()
	for i := range 150 {
		trace := numbered(t, i)
		m := meta(trace, uint64(i+1))
		m.Received = time.Date(2000, time.Month(1+i), 1, 0, 0, 0, 0, time.UTC)
		b.Add(trace, m, cleanVerdict(trace))
	}
	insert(t, s, b)
	if c := counts(t, s); c.TraceRows != 150 || c.Verdicts != 150 {
		t.Errorf("%+v", c)
	}
}

func TestDeploymentFaultStops(t *testing.T) {
	s, _ := open(t)
	exec(t, s, "ALTER TABLE traces MODIFY COLUMN cost_cents Int32")
	err := s.InsertTraces(t.Context(), batchOf(s, numbered(t, 1)))
	if err == nil || database.Classify(err) != database.Stop {
		t.Errorf("a column of another type: %v", err)
	}
	exec(t, s, "RENAME TABLE verdicts TO elsewhere")
	err = s.InsertTraces(t.Context(), batchOf(s, numbered(t, 2)))
	if err == nil || database.Classify(err) != database.Stop {
		t.Errorf("a table that is missing: %v", err)
	}
}
