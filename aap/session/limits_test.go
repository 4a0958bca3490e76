package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/schema"
)

// Each limit is exact: items up to it are judged, and the first one beyond it is not, which the
// verdict says.
func TestBounds(t *testing.T) {
	const acts, decisions, declined, closed = 16, 1024, 256, 1024
	for name, c := range map[string]struct {
		steps     func(n int) []step
		room      int // the n at the limit
		within    string
		beyond    string
		unchecked string // text of the verdict at room + 1
	}{
		"executions": {room: acts, unchecked: "escalations: 1 more were not followed",
			within: "ACTED_BEFORE_ANSWER:16 ESCALATION_UNANSWERED:1", beyond: "ACTED_BEFORE_ANSWER:16 ESCALATION_UNANSWERED:1",
			steps: func(n int) []step {
				return append([]step{{kind: "escalate", action: "buy", escalate: pending}},
					slices.Repeat([]step{{action: "buy", escalate: pending}}, n)...)
			}},
		"accusations": {room: 1024, unchecked: "escalations: 1 more were not followed",
			within: "ACTED_BEFORE_ANSWER:1024", beyond: "ACTED_BEFORE_ANSWER:1024",
			steps: func(n int) (steps []step) {
				for left, i := n, 0; left > 0; left, i = left-acts, i+1 {
					ask := fmt.Sprintf(`{"required":true,"escalation_id":"e%d","escalation_status":"pending"}`, i)
					steps = append(steps, slices.Repeat([]step{{action: "buy", escalate: ask}}, min(left, acts))...)
					steps = append(steps, step{kind: "recommend", action: "buy", escalate: strings.Replace(ask, "pending", "approved", 1)})
				}
				return steps
			}},
		"decisions": {room: decisions, unchecked: "decisions of the principal: 1 more were not followed",
			within: "DENIED_BUT_ACTED:1", beyond: "",
			steps: func(n int) []step {
				var steps []step
				for i := range n {
					steps = append(steps, step{kind: "escalate", action: fmt.Sprint("pay-", i), escalate: fmt.Sprintf(`{"escalation_id":"e%d","escalation_status":"denied"}`, i)})
				}
				return append(steps, step{action: "pay-0"})
			}},
		"declined": {room: declined, unchecked: "decisions of the principal: 1 more were not followed",
			within: "DENIED_BUT_ACTED:1", beyond: "",
			steps: func(n int) []step {
				var steps []step
				for i := range n {
					steps = append(steps, step{kind: "deny", action: fmt.Sprint("pay-", i)})
				}
				return append(steps, step{action: "pay-0"})
			}},
		"answers": {room: closed, within: "", beyond: "ESCALATION_UNANSWERED:1",
			steps: func(n int) []step {
				steps := []step{{kind: "escalate", action: "buy", escalate: pending}, {kind: "recommend", action: "buy", escalate: `{"escalation_id":"e","escalation_status":"timeout"}`}}
				for i := 1; i < n; i++ {
					steps = append(steps, step{kind: "recommend", action: "buy", escalate: fmt.Sprintf(`{"escalation_id":"e%d","escalation_status":"timeout"}`, i)})
				}
				return append(steps, step{action: "buy", escalate: `{"required":true,"escalation_id":"e"}`})
			}},
		"conditions": {room: 64, unchecked: "conditions of approvals: 1 cannot be evaluated",
			within: "APPROVAL_CONDITION_BROKEN:1", beyond: "",
			steps: func(n int) []step {
				conditions := strings.Repeat(`"price <= 60",`, n-1) + `"price <= 50"`
				return []step{{kind: "escalate", action: "buy", escalate: fmt.Sprintf(`{"escalation_id":"e","principal_response":{"decision":"approved","conditions":[%s]}}`, conditions)},
					{action: "buy", params: `{"price":51}`, escalate: ofE}}
			}},
		"gaps": {room: 16384, unchecked: "sequence numbers: 1 more gaps were not looked at",
			within: "TRACE_GAP:16384", beyond: "TRACE_GAP:16384",
			steps: func(n int) []step {
				steps := make([]step, n+1)
				for i := range steps {
					steps[i].number = 2 * i
				}
				return steps
			}},
		"edges": {room: 16, within: "TRACE_ORDER:1", beyond: "",
			steps: func(n int) []step {
				priors := append(slices.Repeat([]string{"tr-1"}, n-1), "tr-3")
				return []step{{second: 5}, {second: 5, priors: priors}, {second: 5, priors: []string{"tr-2"}}}
			}},
		"steps of a circle": {room: 4096, within: "TRACE_ORDER:1", beyond: "",
			steps: func(n int) []step {
				steps := make([]step, n)
				for i := range steps {
					steps[i] = step{second: 5, priors: []string{fmt.Sprint("tr-", i)}}
				}
				steps[0].priors[0] = fmt.Sprint("tr-", n)
				return steps
			}},
	} {
		t.Run(name, func(t *testing.T) {
			for n, want := range map[int]string{c.room: c.within, c.room + 1: c.beyond} {
				v := whole(t, session.Found{}, c.steps(n)...)
				got := strings.Trim(strings.TrimPrefix(fmt.Sprint(v.FindingCounts), "map"), "[]")
				unchecked := []string{}
				if n > c.room && c.unchecked != "" {
					unchecked = append(unchecked, c.unchecked)
				}
				if got != want || !slices.Equal(v.Metadata.Unchecked, unchecked) {
					t.Errorf("%d: found %q, want %q; unchecked %q, want %q", n, got, want, v.Metadata.Unchecked, unchecked)
				}
			}
		})
	}
}

// If as many numbered traces of other sessions are found as were asked for, there may be more.
func TestPartialAnswersAboutNumbersAreReported(t *testing.T) {
	numbers := slices.Repeat([]session.NumberedTrace{numbered("o", 2, 1)}, session.MaxNumbers)
	steps := []step{{number: 1}, {number: 3}}
	if v := whole(t, session.Found{Numbers: numbers[1:]}, steps...); len(v.Metadata.Unchecked) > 0 {
		t.Errorf("unchecked is %q", v.Metadata.Unchecked)
	}
	want := []string{"sequence numbers: only 50000 traces of the agent's other sessions were looked at"}
	if v := whole(t, session.Found{Numbers: numbers}, steps...); !slices.Equal(v.Metadata.Unchecked, want) {
		t.Errorf("unchecked is %q, want %q", v.Metadata.Unchecked, want)
	}
}

// All executions of one time are found, however many there are.
func TestDeniedExecutionsOfOneTimeAreCounted(t *testing.T) {
	steps := []step{{kind: "escalate", action: "pay", escalate: refusal}}
	for range 300 {
		steps = append(steps, step{second: 2, action: "pay"})
	}
	for _, then := range [][]step{steps, append(steps, step{second: 3})} {
		if v := whole(t, session.Found{}, then...); v.FindingCounts[schema.DeniedButActed] != 300 {
			t.Errorf("found %v", v.FindingCounts)
		}
	}
}

// The newest 65,536 ids are known, however many came before.
func TestTheNewestIDsAreKnown(t *testing.T) {
	const room = 65_536
	j := session.New(session.Head{AgentID: "a", SessionID: "s", Part: 1}, nil)
	trace := step{priors: []string{"tr-0"}}.trace(t, 0)
	place := 0
	var forgotten []string
	add := func(priors ...string) {
		trace.TraceID, trace.Context.PriorTraceIDs = fmt.Sprint("tr-", place), priors
		place++
		j.Add(trace, &clean)
	}
	for _, n := range []int{room, 2*room + 10} {
		for place < n {
			add()
		}
		oldest := fmt.Sprint("tr-", place-room) // known until the next trace comes
		add(oldest)
		if q := j.Questions(); !slices.Equal(q.Traces, forgotten) {
			t.Fatalf("after %d traces: questions about %q, want %q", n, q.Traces, forgotten)
		}
		forgotten = append(forgotten, oldest)
		add(oldest)
		if q := j.Questions(); !slices.Equal(q.Traces, forgotten) {
			t.Fatalf("after %d traces: questions about %q, want %q", n, q.Traces, forgotten)
		}
	}
}

// A time before 1970 is valid: a prior trace that never arrived is not a later trace.
func TestAPriorTraceOfATimeBefore1970NeverArrived(t *testing.T) {
	j := session.New(session.Head{AgentID: "a", SessionID: "s", Part: 1}, nil)
	trace := step{priors: []string{"nobody"}}.trace(t, 0)
	trace.Timestamp = time.Unix(-5, 0)
	j.Add(trace, &clean)
	answers := j.Answers(session.Found{})
	v, _ := j.Finish(&answers, at)
	expect(t, v, `TRACE_GAP MEDIUM tr-1: names "nobody" as prior`)
	if v.FindingCounts[schema.TraceOrder] != 0 {
		t.Errorf("counts are %v", v.FindingCounts)
	}
}
