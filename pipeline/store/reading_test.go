package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// A trace of an unknown card is stored, and found again when the card arrives. Its judgement then
// replaces "card unknown", even if clocks disagree.
func TestUnknownCardIsJudgedLater(t *testing.T) {
	s, _ := open(t)
	trace, other := numbered(t, 1), numbered(t, 2)
	b := s.NewTraceBatch()
	for i, tr := range []*schema.Trace{trace, other} {
		v := cleanVerdict(tr)
		v.Status, v.Verified, v.RecommendedAction, v.Metadata.CardDigest = schema.StatusCardUnknown, false, schema.Review, schema.Digest{}
		v.Timestamp = firstReceived.Add(time.Hour) // by a verifier with a fast clock
		b.Add(tr, meta(tr, uint64(i+1)), v)
	}
	insert(t, s, b)
	waiting := func(limit int) []*StoredTrace {
		var out []*StoredTrace
		for stored, err := range s.TracesOfUnknownCards(t.Context(), []string{"ac-0", "ac-1"}, limit) {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, stored)
		}
		return out
	}
	if c := counts(t, s); c.CardUnknown != 2 || len(waiting(10)) != 2 || len(waiting(1)) != 1 {
		t.Fatalf("%+v", c)
	}
	stored := waiting(1)[0]
	verdicts := s.NewVerdictBatch()
	judged, err := schema.Admit(stored.AgentID, stored.Raw)
	if err != nil {
		t.Fatal(err)
	}
	verdicts.Add(judged, stored.Meta(), wholeVerdict(judged))
	if err := s.InsertVerdicts(t.Context(), verdicts); err != nil {
		t.Fatal(err)
	}
	if left := waiting(10); len(left) != 1 || left[0].TraceID != other.TraceID {
		t.Errorf("%d traces are still not judged", len(left))
	}
	if c := counts(t, s); c.CardUnknown != 1 || c.Verdicts != 2 {
		t.Errorf("%+v", c)
	}
	if got := sessionOf(t, s, trace)[0].Verdict; got == nil || got.Status != schema.StatusJudged {
		t.Errorf("verdict for sealing: %+v", got)
	}
	reports, err := s.Trace(t.Context(), trace.TraceID)
	if err != nil || len(reports) != 1 || len(reports[0].Verdicts) != 2 || reports[0].Verdicts[0].Status != schema.StatusJudged {
		t.Errorf("%v %+v", err, reports)
	}
}

func TestSessionsAreReadTogether(t *testing.T) {
	s, _ := open(t)
	b := s.NewTraceBatch()
	var keys []SessionKey
	for i := range 300 {
		trace := numbered(t, 300-i)
		trace.Context.SessionID = fmt.Sprintf("session-%d", i/3)
		trace.AgentID = []string{"a", "b"}[i/3%2]
		b.Add(trace, meta(trace, uint64(i+1)), cleanVerdict(trace))
		if i%3 == 0 {
			keys = append(keys, SessionKey{trace.AgentID, trace.Context.SessionID})
		}
	}
	insert(t, s, b)
	keys = keys[:50]
	// The same session id under another agent is another session.
	keys = append(keys, SessionKey{"b", "session-0"}, SessionKey{"nobody", "session-1"})
	found := map[string]int{}
	for trace, err := range s.SessionTraces(t.Context(), SessionQuery{Sessions: keys, From: firstEvent, To: firstEvent.Add(time.Hour)}) {
		if err != nil {
			t.Fatal(err)
		}
		found[trace.AgentID+"/"+trace.SessionID]++
		if trace.Verdict == nil || trace.Verdict.TraceID != trace.TraceID {
			t.Errorf("trace %s has verdict %+v", trace.TraceID, trace.Verdict)
		}
	}
	for _, key := range keys {
		want := 3
		if key == (SessionKey{"b", "session-0"}) || key.AgentID == "nobody" {
			want = 0
		}
		if n := found[key.AgentID+"/"+key.SessionID]; n != want {
			t.Errorf("%d traces of %+v, want %d", n, key, want)
		}
	}
	if len(found) != 50 {
		t.Errorf("%d sessions, want 50", len(found))
	}
}

// A part of a session is read alone. A trace with the sequence of another part is included if its
// digest is in the query.
func TestPartTraces(t *testing.T) {
	s, _ := open(t)
	traces := manyTraces(t, 40)
	b := s.NewTraceBatch()
	for i, trace := range traces {
		trace.AgentID, trace.Context.SessionID = "a", []string{"s", "other"}[i%2]
		b.Add(trace, meta(trace, uint64(i+1)), cleanVerdict(trace))
	}
	insert(t, s, b)
	key := SessionKey{"a", "s"}
	read := func(q PartQuery) (sequences []uint64) {
		t.Helper()
		q.Session, q.From, q.To = key, firstEvent, firstEvent.Add(time.Hour)
		for trace, err := range s.PartTraces(t.Context(), q) {
			if err != nil {
				t.Fatal(err)
			}
			if trace.Verdict == nil || trace.Verdict.TraceID != trace.TraceID {
				t.Errorf("trace %s has verdict %+v", trace.TraceID, trace.Verdict)
			}
			sequences = append(sequences, trace.Sequence)
		}
		slices.Sort(sequences)
		return sequences
	}
	if got, want := read(PartQuery{After: 10, Cut: 17}), []uint64{11, 13, 15, 17}; !slices.Equal(got, want) {
		t.Errorf("part holds %v, want %v", got, want)
	}
	digests := []string{traces[0].Digest.String(), traces[1].Digest.String(), traces[38].Digest.String()}
	if got, want := read(PartQuery{Digests: digests}), []uint64{1, 39}; !slices.Equal(got, want) {
		t.Errorf("by digest %v, want %v", got, want)
	}
}

// Breaking out of a loop ends the query and returns its connection.
func TestStoppingAReadReleasesItsConnection(t *testing.T) {
	s, _ := open(t)
	insert(t, s, batchOf(s, manyTraces(t, 100)...))
	for range 3 * s.db.Config().Connections {
		for _, err := range s.SessionTraces(t.Context(), SessionQuery{
			Sessions: []SessionKey{{"did:web:agent.example", "s-1"}}, From: firstEvent, To: firstEvent.Add(time.Hour),
		}) {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
	}
}

func TestRemarksByType(t *testing.T) {
	s, _ := open(t)
	b := s.NewTraceBatch()
	for i := range 4 {
		trace := numbered(t, i)
		v := cleanVerdict(trace)
		if i%2 == 0 {
			v = wholeVerdict(trace)
		}
		b.Add(trace, meta(trace, uint64(i+1)), v)
	}
	insert(t, s, b)
	violations, err := s.Violations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	findings, err := s.Findings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	warnings, err := s.remarks(t.Context(), "warnings")
	if err != nil {
		t.Fatal(err)
	}
	for _, ids := range [][]string{
		violations[schema.UnboundedAction], violations[schema.UndeclaredValue], findings[schema.Backdated], warnings[schema.WarnNearBoundary],
	} {
		slices.Sort(ids)
		if !slices.Equal(ids, []string{"tr-0", "tr-2"}) {
			t.Errorf("violations %v, findings %v, warnings %v", violations, findings, warnings)
		}
	}
	if len(violations) != 2 || len(findings) != 1 || len(warnings) != 1 {
		t.Errorf("violations %v, findings %v, warnings %v", violations, findings, warnings)
	}
	if n := one[uint64](t, s, "SELECT violations FROM session_summary WHERE session_id = 's-1' AND traces = 4 AND findings = 2"); n != 4 {
		t.Errorf("session_summary counts %d violations", n)
	}
}

func TestTenantsDoNotSeeEachOther(t *testing.T) {
	s, dsn := open(t)
	other, err := Open(t.Context(), Config{DSN: dsn, Tenant: "other"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	}()
	insert(t, s, batchOf(s, numbered(t, 1)))
	b := other.NewTraceBatch()
	trace := numbered(t, 1)
	m := meta(trace, 1)
	m.Redelivered = true // the same message under another tenant is a different message
	b.Add(trace, m, wholeVerdict(trace))
	insert(t, other, b)
	if a, b := counts(t, s), counts(t, other); a.Traces != 1 || b.Traces != 1 || a.Conflicts+b.Conflicts != 0 {
		t.Errorf("%+v %+v", a, b)
	}
	if v, err := s.Violations(t.Context()); err != nil || len(v) != 0 {
		t.Errorf("%v %v", v, err)
	}
}

func TestQueryHidesCopies(t *testing.T) {
	s, dsn := open(t)
	for range 2 {
		insert(t, s, batchOf(s, numbered(t, 1), numbered(t, 2)))
	}
	result, err := openDSN(t, dsn).Query(t.Context(), "SELECT trace_id, confidence, values_applied, digest_hex FROM traces ORDER BY trace_id")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for row, err := range result.Rows {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, fmt.Sprint(row[0], row[2]))
	}
	if fmt.Sprint(rows) != "[tr-1[honesty privacy] tr-2[honesty privacy]]" || result.Columns[1] != (Column{"confidence", "Nullable(Float64)"}) {
		t.Errorf("%v %v", rows, result.Columns)
	}
	if _, err := s.Query(t.Context(), "SELECT nonsense"); err == nil {
		t.Error("a wrong query has no error")
	}
}
