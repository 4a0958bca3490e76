package session_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aap/session"
)

// parts judges the parts of a session in order. Each resumes from the JSON carry of the
// previous one. It returns the verdict on each part.
func parts(t *testing.T, steps ...[]step) (said []string) {
	t.Helper()
	var carry *session.NextPart
	for i, s := range steps {
		for k := range s {
			s[k].id = or(s[k].id, fmt.Sprintf("tr-%d-%d", i+1, k+1))
			s[k].second = max(s[k].second, 1)
		}
		head := session.Head{AgentID: "a", SessionID: "s", Part: int64(i + 1), LastPart: i == len(steps)-1}
		v, next := part(t, head, carry, session.Found{}, s...)
		var lines []string
		for _, f := range v.Findings {
			lines = append(lines, f.TraceID+": "+f.Description)
		}
		said = append(said, strings.Join(append(lines, v.Metadata.Unchecked...), "; "))
		carry = new(session.NextPart)
		if err := json.Unmarshal([]byte(encoded(t, next)), carry); err != nil {
			t.Fatal(err)
		}
	}
	return said
}

func TestWhatTheNextPartContinuesFrom(t *testing.T) {
	ask := func(id string) step {
		return step{kind: "escalate", action: "buy", escalate: fmt.Sprintf(`{"required":true,"escalation_id":%q,"escalation_status":"pending"}`, id)}
	}
	var many []step
	for i := range 257 {
		many = append(many, step{kind: "deny", action: fmt.Sprint("pay-", i)})
	}
	required := " is required, and the session reports no approval, denial or timeout of it"
	for name, c := range map[string]struct {
		parts [][]step
		want  []string
	}{
		"a number, over a part without": {[][]step{{{number: 3}}, {{}}, {{number: 7}}}, []string{"", "", "tr-3-1: no trace has sequence number 4..6"}},
		"its number occurs again":       {[][]step{{{number: 3}}, {{number: 3}, {number: 3}}}, []string{"", ""}},
		"a gap between parts is filled": {[][]step{{{number: 4}}, {{}, {number: 7}, {number: 6}}}, []string{"", "tr-2-3: no trace has sequence number 5"}},
		"what the agent denied":         {[][]step{{{kind: "deny", action: "pay"}}, {{action: "pay", second: 2}}}, []string{"", `tr-2-1: "pay" is executed although the agent denied the same in trace "tr-1-1"`}},
		"the order of escalations":      {[][]step{{ask("x"), ask("y")}, {}}, []string{"", `tr-1-1: escalation "x" of "buy"` + required + `; tr-1-2: escalation "y" of "buy"` + required}},
		"a turn, by number": {[][]step{{{number: 1, turn: 5, second: 20}}, {{number: 2, turn: 2, second: 10}}},
			[]string{"", "tr-2-1: turn 2 follows turn 5"}},
		"conditions without a meaning": {[][]step{{{kind: "escalate", escalate: `{"escalation_id":"e","principal_response":{"decision":"approved","conditions":["amount <"]}}`}}, {}},
			[]string{"conditions of approvals: 1 cannot be evaluated", ""}},
		"what was lost": {[][]step{many, {}, {}}, []string{"decisions of the principal: 1 more were not followed",
			"escalations and decisions: 193 of earlier parts were not followed", "escalations and decisions: 193 of earlier parts were not followed"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := parts(t, c.parts...); !slices.Equal(got, c.want) {
				t.Errorf("found\n%q\nwant\n%q", got, c.want)
			}
		})
	}
}

// The carry holds 12,288 bytes of each kind, by the estimated sizes, and 64 items of each kind.
// The oldest items are dropped first and counted.
func TestLimitsOfTheNextPart(t *testing.T) {
	type kind struct {
		step  func(i, length int) step // whose texts have length bytes in total
		fixed int
		count func(*session.NextPart) int
	}
	id := func(i, length int) string { return fmt.Sprintf("%0*d", length, i) }
	for name, k := range map[string]kind{
		"open": {fixed: 220, count: func(c *session.NextPart) int { return len(c.Open) }, step: func(i, length int) step {
			return step{id: id(i, 10), kind: "escalate", action: id(i, 20), escalate: fmt.Sprintf(`{"required":true,"escalation_id":%q}`, id(i, length-30))}
		}},
		"open, executed": {fixed: 220 + 150, count: func(c *session.NextPart) int { return len(c.Open) }, step: func(i, length int) step {
			return step{id: id(i, 10), action: id(i, 20), escalate: fmt.Sprintf(`{"required":true,"escalation_id":%q}`, id(i, length/2-30))}
		}},
		"decided": {fixed: 280, count: func(c *session.NextPart) int { return len(c.Decided) }, step: func(i, length int) step {
			return step{id: id(i, 10), kind: "recommend", action: id(i, 20), escalate: fmt.Sprintf(`{"escalation_id":%q,"escalation_status":"approved","principal_response":{"conditions":["price <= 50"]}}`,
				id(i, length-30-len("price <= 50")))}
		}},
		"declined": {fixed: 150, count: func(c *session.NextPart) int { return len(c.Declined) }, step: func(i, length int) step {
			return step{id: id(i, 10), kind: "deny", action: id(i, length-10)}
		}},
	} {
		carry := func(items, size int) (*session.NextPart, int) {
			steps := make([]step, items)
			for i := range steps {
				steps[i] = k.step(i, size-k.fixed)
			}
			_, c := part(t, session.Head{AgentID: "a", SessionID: "s", Part: 1}, nil, session.Found{}, steps...)
			return c, k.count(c)
		}
		for size, want := range map[int]int{512: 24, 514: 23} {
			if c, n := carry(25, size); n != want || c.Lost != int64(25-want) {
				t.Errorf("%s: of 25 items of %d bytes %d are passed on, %d lost; want %d", name, size, n, c.Lost, want)
			}
		}
	}
	var small []step
	for i := range 65 {
		small = append(small, step{kind: "deny", action: id(i, 5)})
	}
	_, c := part(t, session.Head{AgentID: "a", SessionID: "s", Part: 1}, nil, session.Found{}, small...)
	if len(c.Declined) != 64 || c.Lost != 1 {
		t.Errorf("of 65 small items %d are passed on, %d lost", len(c.Declined), c.Lost)
	}
}

// Lost is summed over all kinds and all parts.
func TestLostIsASum(t *testing.T) {
	var steps []step
	for i := range 257 { // 193 are lost: 1 by the limit of a part, 192 by that of the carry
		steps = append(steps, step{kind: "deny", action: fmt.Sprint("pay-", i)})
	}
	for range 18 { // 2 are lost by the limit of executions
		steps = append(steps, step{action: "buy", escalate: pending})
	}
	for i := range 70 { // not all fit into the carry
		steps = append(steps, step{kind: "escalate", action: "x", escalate: fmt.Sprintf(`{"required":true,"escalation_id":"x%d"}`, i)})
	}
	v, c := part(t, session.Head{AgentID: "a", SessionID: "s", Part: 2}, &session.NextPart{Lost: 1000}, session.Found{}, steps...)
	lost := 1000 + 193 + 2 + 71 - len(c.Open)
	if c.Lost != int64(lost) || len(c.Declined) != 64 {
		t.Errorf("%d lost, want %d; %d open; unchecked %q", c.Lost, lost, len(c.Open), v.Metadata.Unchecked)
	}
}
