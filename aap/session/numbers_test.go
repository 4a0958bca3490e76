package session_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/schema"
)

func TestMissingNumbersAreRanges(t *testing.T) {
	v := whole(t, session.Found{}, step{number: 1}, step{number: 2}, step{number: 4}, step{number: 10})
	expect(t, v, "TRACE_GAP MEDIUM tr-3: no trace has sequence number 3", "TRACE_GAP MEDIUM tr-4: no trace has sequence number 5..9")
	if !v.Verified || v.RecommendedAction != schema.Review || v.FindingCounts[schema.TraceGap] != 2 {
		t.Errorf("verdict is %s", encoded(t, v))
	}
	expect(t, whole(t, session.Found{}, step{number: 7}, step{number: 8}, step{number: 9}))
	expect(t, whole(t, session.Found{}, step{}, step{number: 3}, step{}))
}

// Where not every trace is numbered, time decides the order, and numbers may come in any order.
func TestNumbersInAnyOrder(t *testing.T) {
	v := whole(t, session.Found{}, step{number: 5, second: 1}, step{number: 1, second: 1}, step{second: 1}, step{number: 3, second: 1})
	expect(t, v, "TRACE_GAP MEDIUM tr-4: no trace has sequence number 2", "TRACE_GAP MEDIUM tr-1: no trace has sequence number 4")
	expect(t, whole(t, session.Found{}, step{number: 5, second: 1}, step{number: 4, second: 1}, step{number: 3, second: 1}))
	expect(t, whole(t, session.Found{}, step{second: 1}, step{number: 5, second: 1}, step{number: 3, second: 2}, step{number: 4, second: 2}),
		"TRACE_ORDER MEDIUM tr-3: sequence number 3 has a later event time than a number above it",
		"TRACE_ORDER MEDIUM tr-4: sequence number 4 has a later event time than a number above it")
}

func TestTheLargestRangeCostsNothing(t *testing.T) {
	v := whole(t, session.Found{}, step{number: 1}, step{number: int64(math.MaxInt64)})
	expect(t, v, "TRACE_GAP MEDIUM tr-2: no trace has sequence number 2..9223372036854775806")
}

func numbered(sessionID string, number uint64, second int) session.NumberedTrace {
	return session.NumberedTrace{SessionID: sessionID, Number: number, At: time.Date(2026, 2, 1, 0, 0, second, 0, time.UTC)}
}

// One counter of an agent may number parallel sessions.
func TestNumbersOfOtherSessions(t *testing.T) {
	steps := []step{{number: 1, second: 10}, {number: 4, second: 20}}
	between := func(found ...session.NumberedTrace) *schema.SessionVerdict {
		return whole(t, session.Found{Numbers: found}, steps...)
	}
	expect(t, between(numbered("o", 2, 12), numbered("o", 3, 15)))
	expect(t, between(numbered("o", 3, 15), numbered("o", 2, 12)))
	expect(t, between(numbered("o", 2, 12), numbered("o", 3, 15), numbered("o", 9, 16)))
	expect(t, whole(t, session.Found{Numbers: []session.NumberedTrace{numbered("o", 4, 1)}}, step{number: 1}, step{number: 6}),
		"TRACE_GAP MEDIUM tr-2: no trace has sequence number 2..3", "TRACE_GAP MEDIUM tr-2: no trace has sequence number 5")
	expect(t, between(numbered("o", 2, 12), numbered("p", 3, 15)))
	expect(t, between(numbered("o", 2, 12)), "TRACE_GAP MEDIUM tr-2: no trace has sequence number 3")
	expect(t, between(numbered("o", 2, 12), numbered("o", 3, 50)), "TRACE_GAP MEDIUM tr-2: no trace has sequence number 3")
	// A session that also has number 1 has a counter of its own.
	expect(t, between(numbered("o", 1, 11), numbered("o", 2, 12), numbered("o", 3, 15)), "TRACE_GAP MEDIUM tr-2: no trace has sequence number 2..3")
	// Numbers in another part of this session fill a gap at any time.
	expect(t, between(numbered("s", 2, 50), numbered("s", 3, 50), numbered("s", 1, 10)))
}

// A counter of the agent continues from one session to the next.
func TestNumbersBetweenSessions(t *testing.T) {
	judge := func(before *session.NumberedTrace, elsewhere []session.NumberedTrace, steps ...step) *schema.SessionVerdict {
		t.Helper()
		j := session.New(session.Head{AgentID: "a", SessionID: "s", Part: 1, LastPart: true}, nil)
		for i, s := range steps {
			j.Add(s.trace(t, i), &clean)
		}
		j.Precede(before)
		answers := j.Answers(session.Found{Numbers: elsewhere})
		v, _ := j.Finish(&answers, at)
		again := session.New(session.Head{AgentID: "a", SessionID: "s", Part: 1, LastPart: true}, nil) // after a crash, no questions are asked again
		for i, s := range steps {
			again.Add(s.trace(t, i), &clean)
		}
		if w, _ := again.Finish(&answers, at); encoded(t, w) != encoded(t, v) {
			t.Errorf("from the plan: %s\nwant %s", encoded(t, w), encoded(t, v))
		}
		return v
	}
	two := numbered("o", 2, 1)
	expect(t, judge(&two, nil, step{number: 4}, step{number: 5}),
		"TRACE_GAP MEDIUM tr-1: no trace has sequence number 3, between the agent's session before and this one")
	expect(t, judge(&two, nil, step{number: 9, second: 5}, step{number: 7, second: 5}),
		"TRACE_GAP MEDIUM tr-2: no trace has sequence number 3..6, between the agent's session before and this one",
		"TRACE_GAP MEDIUM tr-1: no trace has sequence number 8")
	expect(t, judge(&two, nil, step{number: 3}, step{number: 4}))
	expect(t, judge(nil, nil, step{number: 4}))
	// The previous session also has number 5: it has a counter of its own.
	expect(t, judge(&two, []session.NumberedTrace{two, numbered("o", 5, 2)}, step{number: 4}, step{number: 5}))
}

func TestQuestionAboutThePrecedingTrace(t *testing.T) {
	ask := func(carry *session.NextPart, numbers ...any) *session.NumberQuestion {
		j := session.New(session.Head{AgentID: "a", SessionID: "s", Part: 1}, carry)
		for i, n := range numbers {
			j.Add(step{number: n}.trace(t, i), &clean)
		}
		return j.Preceding()
	}
	for _, numbers := range [][]any{nil, {nil}, {0, 1}, {1, 2}, {5, 1}} {
		if q := ask(nil, numbers...); q != nil {
			t.Errorf("%v: a question, but no trace can precede the session: %+v", numbers, q)
		}
	}
	q := ask(nil, 8, 7)
	begun := time.Date(2026, 2, 1, 0, 0, 2, 0, time.UTC)
	if q == nil || q.Greatest != 6 || !q.From.Equal(begun.Add(-24*time.Hour)) || !q.To.Equal(begun.Add(time.Second)) {
		t.Errorf("the question is %+v", q)
	}
	if q := ask(nil, 2); q == nil || q.Greatest != 1 {
		t.Errorf("from 2 on, the question is %+v", q)
	}
	_, carry := part(t, session.Head{AgentID: "a", SessionID: "s", Part: 1}, nil, session.Found{}, step{number: 3})
	if q := ask(carry, 7); q != nil {
		t.Errorf("a later part asks %+v", q)
	}
}

func TestQuestionAboutNumbers(t *testing.T) {
	j := session.New(session.Head{AgentID: "a", SessionID: "s", Part: 1}, nil)
	if j.Add(step{number: 7}.trace(t, 0), &clean); j.Questions().Numbers != nil {
		t.Error("there is a question although nothing is missing")
	}
	j.Add(step{number: 9}.trace(t, 9), &clean)
	var q *session.NumberQuestion
	j.Add(step{second: 30}.trace(t, 1), &clean)
	j.Add(step{second: 45}.trace(t, 2), &clean)
	q = j.Questions().Numbers // an hour around the part, also around its traces without a number
	from, to := time.Date(2026, 1, 31, 23, 0, 1, 0, time.UTC), time.Date(2026, 2, 1, 1, 0, 45, 0, time.UTC)
	if q == nil || q.Least != 7 || q.Greatest != 9 || !q.From.Equal(from) || !q.To.Equal(to) {
		t.Errorf("the question is %+v", q)
	}
	filled := session.New(session.Head{AgentID: "a", SessionID: "s", Part: 1}, nil)
	for i, number := range []int{1, 3, 2} {
		filled.Add(step{number: number, second: 1}.trace(t, i), &clean)
	}
	if q := filled.Questions().Numbers; q != nil {
		t.Errorf("a question although the gap is filled: %+v", q)
	}
}

func TestOrderOfNumbers(t *testing.T) {
	v := whole(t, session.Found{}, step{number: 1, second: 9}, step{number: 2, second: 8}, step{number: 2, second: 10, id: "other"})
	expect(t, v, "TRACE_ORDER MEDIUM tr-2: sequence number 2 has an earlier event time than the number before it",
		"TRACE_ORDER MEDIUM other: another trace of the session has sequence number 2 too")
	expect(t, whole(t, session.Found{}, step{number: 1}, step{number: 1}), "TRACE_ORDER MEDIUM tr-2: another trace of the session has sequence number 1 too")
}

// Every second number belongs to another session: there is a gap at every trace.
func TestManyGapsAreBoundedAndCounted(t *testing.T) {
	const traces = 10_000
	steps := make([]step, traces)
	var others []session.NumberedTrace
	for i := range steps {
		steps[i] = step{number: 2 * i, second: i + 1}
		if i < traces/2 {
			others = append(others, numbered("o", uint64(2*i+1), i+1))
		}
	}
	expect(t, whole(t, session.Found{Numbers: others}, steps[:traces/2+1]...))
	v := whole(t, session.Found{}, steps...)
	if len(v.Findings) != schema.MaxSessionFindings || v.FindingCounts[schema.TraceGap] != traces-1 || len(v.Metadata.Unchecked) > 0 {
		t.Errorf("%d findings listed, %d counted, unchecked %q", len(v.Findings), v.FindingCounts[schema.TraceGap], v.Metadata.Unchecked)
	}
}

// The record of a plan holds the answers: they must stay small for any session, with long ids
// and with short ones.
func TestAnswersAreSmall(t *testing.T) {
	for width, traces := range map[int]int{1: 1100, 100: 150, 500: 150} {
		j := session.New(session.Head{AgentID: "a", SessionID: "s", Part: 1}, nil)
		add := func(s step) { j.Add(s.trace(t, 0), &clean) }
		for i := range traces {
			id := fmt.Sprintf("%0*d", width, i)
			ask := fmt.Sprintf(`{"required":true,"escalation_id":"o%s","escalation_status":"pending"}`, id)
			add(step{number: 3 * i, priors: []string{"nobody-" + id}, action: id, escalate: ask})
			for range i % 4 {
				add(step{id: "again-" + id, action: id, escalate: ask})
			}
			add(step{kind: "deny", action: id})
			add(step{kind: "deny", action: id, escalate: fmt.Sprintf(`{"escalation_id":"d%s","principal_response":{"decision":"denied","timestamp":"2026-02-01T00:00:02.123456789Z"}}`, id)})
			add(step{kind: "recommend", action: "x" + id, escalate: fmt.Sprintf(`{"escalation_id":"a%s","principal_response":{"decision":"approved","timestamp":"2026-02-01T00:00:02.123456789Z"}}`, id)})
		}
		answers := j.Answers(session.Found{})
		v, carry := j.Finish(&answers, at)
		if n := len(encoded(t, answers)) + len(encoded(t, carry)); n > 64<<10 {
			t.Errorf("width %d: answers and the state for the next part take %d bytes", width, n)
		}
		if traces > 1000 && len(v.Metadata.Unchecked) != 3 || carry.Lost == 0 || len(carry.Open) == 0 || len(carry.Answered) == 0 || len(carry.Decided) == 0 || len(carry.Declined) == 0 {
			t.Errorf("width %d: unchecked is %q, lost %d, %d open, %d answered, %d decided, %d declined", width, v.Metadata.Unchecked, carry.Lost,
				len(carry.Open), len(carry.Answered), len(carry.Decided), len(carry.Declined))
		}
	}
}

func TestRangeText(t *testing.T) {
	for text, want := range map[string]session.Range{"3": {From: 3, To: 3}, "3..17": {From: 3, To: 17}} {
		var r session.Range
		if err := json.Unmarshal([]byte(`"`+text+`"`), &r); err != nil || r != want || r.String() != text {
			t.Errorf("%s reads as %v (%v)", text, r, err)
		}
	}
	for _, text := range []string{"", "x", "3..", "..3", "4..3", "-1", "1..2..3"} {
		if err := new(session.Range).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is accepted as a range", text)
		}
	}
}
