package session_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/schema"
)

func TestPriorTraces(t *testing.T) {
	before := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	elsewhere := session.Found{Traces: []session.PriorTrace{
		{TraceID: "mine", AgentID: "a", At: before}, {TraceID: "mine", AgentID: "b", At: before},
		{TraceID: "foreign", AgentID: "b", At: before},
		{TraceID: "future", AgentID: "a", At: before.AddDate(1, 0, 0)},
		{TraceID: "shared", AgentID: "b", At: before}, {TraceID: "shared", AgentID: "a", At: before},
		{TraceID: "twice", AgentID: "a", At: before.AddDate(1, 0, 0)}, {TraceID: "twice", AgentID: "a", At: before},
		{TraceID: "at once", AgentID: "a", At: time.Date(2026, 2, 1, 0, 0, 2, 0, time.UTC)},
	}}
	for name, c := range map[string]struct {
		priors []string
		want   []string
	}{
		"a trace of the session": {[]string{"tr-1"}, nil},
		"of another session":     {[]string{"mine"}, nil},
		"and of another agent":   {[]string{"shared"}, nil},
		"the earliest of two":    {[]string{"twice"}, nil},
		"of its own time":        {[]string{"at once"}, nil},
		"never arrived":          {[]string{"nobody"}, []string{`TRACE_GAP MEDIUM tr-2: names "nobody" as prior, which is not there`}},
		"of another agent":       {[]string{"foreign"}, []string{`TRACE_ORDER MEDIUM tr-2: names "foreign" as prior, a trace of another agent`}},
		"of a later time":        {[]string{"future"}, []string{`TRACE_ORDER MEDIUM tr-2: names "future" as prior, a later trace`}},
		"itself":                 {[]string{"tr-2"}, []string{`TRACE_ORDER MEDIUM tr-2: the trace names itself`}},
		"a later one":            {[]string{"tr-3"}, []string{`TRACE_ORDER MEDIUM tr-2: names "tr-3" as prior, a later trace`}},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, whole(t, elsewhere, step{}, step{priors: c.priors}, step{}, step{priors: c.priors[:0]}), c.want...)
		})
	}
}

func TestPriorTracesInACircle(t *testing.T) {
	v := whole(t, session.Found{}, step{priors: []string{"tr-3"}}, step{priors: []string{"tr-1"}}, step{priors: []string{"tr-2"}})
	expect(t, v, `TRACE_ORDER MEDIUM tr-1: names "tr-3" as prior, a later trace, which leads back to it in a circle`)
	// Among traces of the same time the order of arrival is no fault, but a circle is.
	expect(t, whole(t, session.Found{}, step{priors: []string{"tr-2"}, second: 5}, step{second: 5}))
	v = whole(t, session.Found{}, step{priors: []string{"tr-2"}, second: 5}, step{priors: []string{"tr-1"}, second: 5})
	expect(t, v, `TRACE_ORDER MEDIUM tr-2: prior traces run in a circle through this one`)
	// Reported once for each time, whatever the direction of the search.
	for _, steps := range [][]step{
		{{priors: []string{"tr-3", "tr-2"}}, {priors: []string{"tr-1"}}, {priors: []string{"tr-1"}}},
		{{priors: []string{"tr-3"}}, {}, {priors: []string{"tr-1", "tr-2"}}},
		{{priors: []string{"tr-3"}}, {priors: []string{"tr-4"}}, {priors: []string{"tr-1", "tr-2"}}, {priors: []string{"tr-2"}}},
	} {
		for i := range steps {
			steps[i].second = 5
		}
		expect(t, whole(t, session.Found{}, steps...), `TRACE_ORDER MEDIUM tr-3: prior traces run in a circle through this one`)
	}
}

// The cost of a trace that names very many traces is bounded, and the verdict says what was
// left out.
func TestPriorTracesWithoutEnd(t *testing.T) {
	names := make([]string, 5000)
	for i := range names {
		names[i] = fmt.Sprintf("nobody-%d", i)
	}
	v := whole(t, session.Found{}, step{priors: names}, step{priors: names[200:400]}, step{priors: names[400:600]},
		step{priors: names[600:800]}, step{priors: names[800:1000]}, step{priors: names[1000:1200]})
	if len(v.Findings) != schema.MaxSessionFindings || v.FindingCounts[schema.TraceGap] != 1000 {
		t.Errorf("%d listed, %d counted", len(v.Findings), v.FindingCounts[schema.TraceGap])
	}
	if want := fmt.Sprintf("[prior traces: %d more were not looked for]", 5000-256+200); fmt.Sprint(v.Metadata.Unchecked) != want {
		t.Errorf("unchecked is %q, want %s", v.Metadata.Unchecked, want)
	}
}

// Each trace names the previous one, as agents do. A forgotten id becomes a question only if it
// is named again.
func TestLongChainAsksNothing(t *testing.T) {
	const traces = 70_000 // more than are kept
	j := session.New(session.Head{AgentID: "a", SessionID: "s", Part: 1}, nil)
	trace := step{priors: []string{""}, number: 0, turn: 0}.trace(t, 0)
	for i := range traces {
		trace.Context.PriorTraceIDs[0] = fmt.Sprintf("tr-%d", i-1)
		trace.TraceID, trace.Context.SequenceNumber = fmt.Sprintf("tr-%d", i), uint64(i)
		if i == 0 {
			trace.Context.PriorTraceIDs = trace.Context.PriorTraceIDs[:0]
		}
		j.Add(trace, &clean)
		trace.Context.PriorTraceIDs = trace.Context.PriorTraceIDs[:1]
	}
	if q := j.Questions(); q.Numbers != nil || len(q.Traces) > 0 {
		t.Errorf("questions are %+v", q)
	}
	trace.TraceID, trace.Context.PriorTraceIDs[0] = "last", "tr-0"
	j.Add(trace, &clean)
	if q := j.Questions(); len(q.Traces) != 1 || q.Traces[0] != "tr-0" {
		t.Errorf("questions about a forgotten trace are %+v", q)
	}
}

func TestAnswersOfAnotherVersionAreReported(t *testing.T) {
	j := session.New(session.Head{AgentID: "a", SessionID: "s", Part: 1}, nil)
	j.Add(step{priors: []string{"nobody"}}.trace(t, 0), &clean)
	for _, answers := range []*session.Answers{nil, {}, {Priors: "mm"}} {
		if v, _ := j.Finish(answers, at); len(v.Metadata.Unchecked) != 1 || len(v.Findings) > 0 {
			t.Errorf("answers %+v: unchecked %q, %d findings", answers, v.Metadata.Unchecked, len(v.Findings))
		}
	}
}
