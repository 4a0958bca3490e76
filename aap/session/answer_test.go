package session_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/aap/session"
)

// respond returns an answer to escalation e, given at that second of the tests' minute.
func respond(status string, second int) string {
	return fmt.Sprintf(`{"required":true,"escalation_id":"e","escalation_status":%q,"principal_response":{"decision":%q,"timestamp":%q}}`,
		status, status, clock(second))
}

func clock(second int) string {
	return fmt.Sprintf("2026-02-01T00:%02d:%02dZ", second/60, second%60)
}

func TestActedBeforeAnswer(t *testing.T) {
	buy := func(kind, escalation string) step {
		return step{kind: kind, action: "buy", params: `{"what":"x"}`, escalate: escalation}
	}
	asked := buy("escalate", pending)
	while := `ACTED_BEFORE_ANSWER HIGH tr-2: "buy" is executed while escalation "e" of "buy" is pending; trace "tr-3" reports the answer`
	before := `ACTED_BEFORE_ANSWER HIGH tr-2: "buy" is executed before the answer to escalation "e" of "buy"; trace "tr-3" reports the answer`
	timeout := `{"required":true,"escalation_id":"e","escalation_status":"timeout"}`
	open := `ESCALATION_UNANSWERED HIGH tr-1`
	yes := `{"escalation_status":"approved"}`
	at2 := func(kind, escalation string) step { // at second 2
		return step{second: 2, kind: kind, action: "buy", params: `{"what":"x"}`, escalate: escalation}
	}
	for name, c := range map[string]struct {
		steps []step
		want  []string
	}{
		"approved later":                       {[]step{asked, buy("execute", pending), buy("recommend", answer)}, []string{while}},
		"denied later":                         {[]step{asked, buy("execute", pending), buy("recommend", refusal)}, []string{while}},
		"asked and acted in one":               {[]step{buy("execute", pending), {}, buy("recommend", answer)}, []string{`ACTED_BEFORE_ANSWER HIGH tr-1`}},
		"never answered":                       {[]step{asked, buy("execute", pending)}, []string{`ACTED_BEFORE_ANSWER HIGH tr-2: "buy" is executed while escalation "e" of "buy" is pending`, open}},
		"each execution":                       {[]step{asked, buy("execute", pending), buy("execute", pending)}, []string{`ACTED_BEFORE_ANSWER HIGH tr-2`, `ACTED_BEFORE_ANSWER HIGH tr-3`, open}},
		"a timeout is no answer":               {[]step{asked, buy("execute", pending), buy("recommend", timeout)}, []string{while}},
		"an unknown decision is no answer":     {[]step{asked, buy("execute", `{"required":true,"escalation_id":"e","escalation_status":"pending","principal_response":{"decision":"perhaps"}}`)}, []string{`ACTED_BEFORE_ANSWER HIGH tr-2`, open}},
		"the answer is dated after":            {[]step{asked, buy("execute", pending), buy("recommend", respond("approved", 3))}, []string{while}},
		"the answer is dated before":           {[]step{asked, buy("execute", pending), buy("recommend", respond("approved", 2))}, nil},
		"without a word, under its id":         {[]step{asked, buy("execute", ofE), buy("recommend", answer)}, []string{before}},
		"without a word, the very same":        {[]step{asked, buy("execute", ""), buy("recommend", answer)}, []string{before}},
		"without a word, then denied":          {[]step{asked, buy("execute", ""), buy("recommend", refusal)}, []string{before}},
		"without a word, dated long after":     {[]step{asked, buy("execute", ""), buy("recommend", respond("approved", 63))}, []string{before}},
		"without a word, dated a minute after": {[]step{asked, buy("execute", ""), buy("recommend", respond("approved", 62))}, nil},
		"without a word, never answered":       {[]step{asked, buy("execute", "")}, []string{open}},
		"without a word, then timed out":       {[]step{asked, buy("execute", ""), buy("recommend", timeout)}, nil},
		"a later date follows":                 {[]step{asked, buy("execute", ofE), buy("recommend", answer), buy("recommend", respond("approved", 2))}, nil},
		"asking, without a word":               {[]step{buy("execute", `{"required":true,"escalation_id":"e"}`), buy("recommend", answer)}, nil},
		"asking, without a word, dated after":  {[]step{buy("execute", `{"required":true,"escalation_id":"e"}`), buy("recommend", respond("approved", 62))}, []string{`ACTED_BEFORE_ANSWER HIGH tr-1`}},
		"under the id of another action":       {[]step{asked, buy("recommend", answer), {action: "sell", escalate: pending}}, []string{`ACTED_BEFORE_ANSWER HIGH tr-3`, `ESCALATION_UNANSWERED HIGH tr-3`}},
		"at the time of an answer elsewhere":   {[]step{asked, {second: 2, action: "buy", params: `{"what":"x"}`}, {second: 2, kind: "recommend", action: "confirm", escalate: answer}}, nil},
		"of something else":                    {[]step{asked, {action: "buy", params: `{"what":"y"}`}, buy("recommend", answer)}, nil},
		"of another amount":                    {[]step{asked, {action: "buy", params: `{"what":"x","n":2}`}, buy("recommend", answer)}, nil},
		"another action":                       {[]step{asked, {action: "search", params: `{"what":"x"}`}, buy("recommend", answer)}, nil},
		"under another escalation":             {[]step{asked, buy("execute", otherYes), buy("recommend", answer)}, nil},
		"on an earlier approval":               {[]step{buy("recommend", otherYes), asked, buy("execute", ""), buy("recommend", answer)}, nil},
		"with the answer":                      {[]step{asked, buy("execute", answer)}, nil},
		"after the answer":                     {[]step{asked, buy("recommend", answer), buy("execute", "")}, nil},
		"after it, the question repeated":      {[]step{asked, buy("recommend", answer), buy("execute", pending)}, nil},
		"repeated, the answer elsewhere":       {[]step{asked, {kind: "recommend", action: "confirm", escalate: answer}, buy("execute", pending)}, nil},
		"after a timeout":                      {[]step{asked, buy("recommend", timeout), buy("execute", "")}, nil},
		"after a timeout, repeated":            {[]step{asked, buy("recommend", timeout), buy("execute", pending)}, nil},
		"at the time of the answer":            {[]step{asked, {second: 2, action: "buy", escalate: pending}, {second: 2, kind: "recommend", action: "buy", escalate: answer}}, nil},
		"the answer to another thing":          {[]step{{kind: "escalate", action: "buy", params: `{"what":"x"}`, escalate: unnamed}, buy("execute", ""), {kind: "recommend", action: "buy", params: `{"what":"y"}`, escalate: `{"escalation_status":"approved"}`}}, nil},
		"the approval of another":              {[]step{buy("escalate", unnamed), buy("execute", ""), buy("execute", `{"required":true,"escalation_id":"z","escalation_status":"approved"}`)}, nil},
		"one of two that are open":             {[]step{asked, buy("escalate", ofOther), buy("execute", ""), buy("recommend", respond("approved", 2)), buy("recommend", otherYes)}, nil},
		"the other of two that are open":       {[]step{buy("escalate", ofOther), asked, buy("execute", ""), buy("recommend", respond("approved", 2)), buy("recommend", otherYes)}, nil},
		"not required":                         {[]step{buy("execute", `{"required":false,"escalation_id":"e","escalation_status":"pending"}`), buy("recommend", answer)}, nil},
		"only recommended":                     {[]step{asked, buy("recommend", pending), buy("recommend", answer)}, nil},
		"of another amount, without ids":       {[]step{buy("escalate", unnamed), {action: "buy", params: `{"what":"x","n":2}`}, buy("recommend", yes)}, nil},
		"of another amount, under its id":      {[]step{asked, {action: "buy", params: `{"what":"x","n":2}`, escalate: ofE}, buy("recommend", answer)}, []string{before}},
		"under its id, answered elsewhere":     {[]step{asked, buy("execute", ofE), {kind: "recommend", action: "confirm", escalate: answer}}, []string{before}},
		"at the time of another's answer":      {[]step{asked, at2("execute", ""), at2("recommend", otherYes), buy("recommend", answer)}, nil},
		"pending at another's answer":          {[]step{asked, at2("execute", notRequired), at2("recommend", otherYes), buy("recommend", answer)}, nil},
		"pending after it, at its time":        {[]step{asked, at2("recommend", otherYes), at2("execute", notRequired), buy("recommend", answer)}, nil},
		"pending after another's answer":       {[]step{asked, buy("recommend", otherYes), buy("execute", notRequired), buy("recommend", answer)}, []string{`ACTED_BEFORE_ANSWER HIGH tr-3`}},
		"at the time of another's denial":      {[]step{asked, at2("execute", ""), at2("recommend", otherNo), buy("recommend", answer)}, nil},
		"after another's denial, at its time":  {[]step{asked, at2("recommend", otherNo), at2("execute", ""), buy("recommend", answer)}, nil},
		"pending, two asked at one time":       {[]step{{id: "tr-b", second: 1, kind: "escalate", action: "buy", escalate: ofOther}, {id: "tr-a", second: 1, kind: "escalate", action: "buy", escalate: pending}, {action: "buy", escalate: notRequired}}, []string{`ESCALATION_UNANSWERED HIGH tr-b`, `ACTED_BEFORE_ANSWER HIGH tr-3: "buy" is executed while escalation "e"`, `ESCALATION_UNANSWERED HIGH tr-a`}},
		"pending, asking again itself":         {[]step{{id: "tr-b", kind: "escalate", action: "buy", escalate: openUnnamed}, {id: "tr-a", kind: "escalate", action: "buy", escalate: ofOther}, {action: "buy", escalate: openUnnamed}}, []string{`ACTED_BEFORE_ANSWER HIGH tr-3: "buy" is executed while an escalation of "buy"`, `ESCALATION_UNANSWERED HIGH tr-b`, `ESCALATION_UNANSWERED HIGH tr-a`}},
		"named at the time of another's":       {[]step{asked, at2("execute", ofE), at2("recommend", otherYes), buy("recommend", answer)}, []string{`ACTED_BEFORE_ANSWER HIGH tr-2`}},
		"named after another's, at its time":   {[]step{asked, at2("recommend", otherYes), at2("execute", ofE), buy("recommend", answer)}, []string{`ACTED_BEFORE_ANSWER HIGH tr-3`}},
		"another response has a later date":    {[]step{asked, buy("execute", ofE), buy("recommend", answer), buy("recommend", `{"escalation_id":"z","principal_response":{"decision":"approved","timestamp":"2026-02-01T00:00:02Z"}}`)}, []string{before}},
		"on the approval of something else":    {[]step{{kind: "recommend", action: "sell", escalate: otherYes}, asked, buy("execute", ""), buy("recommend", answer)}, []string{`ACTED_BEFORE_ANSWER HIGH tr-3`}},
	} {
		t.Run(name, func(t *testing.T) { expect(t, whole(t, session.Found{}, c.steps...), c.want...) })
	}
}

func TestContradictoryAnswers(t *testing.T) {
	for block, want := range map[string][]string{
		bothWays: {`CONTRADICTORY_ANSWER HIGH tr-1: escalation_status is "denied", and the principal's decision is "Approved"`},
		`{"escalation_status":"approved","principal_response":{"decision":"denied"}}`:   {`CONTRADICTORY_ANSWER HIGH tr-1`},
		`{"escalation_status":"approved","principal_response":{"decision":"approved"}}`: nil,
		`{"escalation_status":"timeout","principal_response":{"decision":"approved"}}`:  nil, // a late response
		`{"escalation_status":"pending","principal_response":{"decision":"denied"}}`:    nil, // the status is outdated
		`{"escalation_status":"denied","principal_response":{"decision":"unknown"}}`:    nil,
		`{"escalation_status":"approved","principal_response":{}}`:                      nil,
	} {
		expect(t, whole(t, session.Found{}, step{kind: "recommend", action: "buy", escalate: block}), want...)
	}
}

func TestDatesOfAnswers(t *testing.T) {
	buy := func(kind, escalation string) step { return step{kind: kind, action: "buy", escalate: escalation} }
	for name, c := range map[string]struct {
		steps []step
		want  []string
	}{
		"long after the action":      {[]step{buy("execute", respond("approved", 62))}, []string{`TIME_IMPLAUSIBLE MEDIUM tr-1: "buy" is executed at 2026-02-01T00:00:01Z, and the response is dated later: 2026-02-01T00:01:02Z`}},
		"within a minute of it":      {[]step{buy("execute", respond("approved", 61))}, nil},
		"before it":                  {[]step{buy("execute", respond("approved", 1))}, nil},
		"after the question":         {[]step{buy("escalate", respond("approved", 3000))}, nil},
		"of a recommendation":        {[]step{buy("recommend", respond("approved", 3000))}, nil},
		"of the approval it names":   {[]step{buy("escalate", respond("approved", 3000)), buy("execute", answer)}, []string{`TIME_IMPLAUSIBLE MEDIUM tr-2`}},
		"within a minute, as named":  {[]step{buy("escalate", respond("approved", 62)), buy("execute", answer)}, nil},
		"named without a word":       {[]step{buy("escalate", respond("approved", 3000)), buy("execute", ofE)}, []string{`ACTED_BEFORE_ANSWER HIGH tr-2: "buy" is executed at 2026-02-01T00:00:02Z, and trace "tr-1" dates the approval of escalation "e" later`}},
		"named as pending":           {[]step{buy("escalate", respond("approved", 3000)), buy("execute", pending)}, []string{`ACTED_BEFORE_ANSWER HIGH tr-2`}},
		"at the time of the report":  {[]step{{second: 2, kind: "recommend", action: "buy", escalate: respond("approved", 3000)}, {second: 2, action: "buy", escalate: ofE}}, nil},
		"not named":                  {[]step{buy("escalate", respond("approved", 3000)), buy("execute", "")}, nil},
		"of a second approval":       {[]step{buy("recommend", respond("approved", 1)), buy("escalate", respond("approved", 3000)), buy("execute", ofE)}, nil},
		"after an approval undated":  {[]step{buy("recommend", answer), buy("escalate", respond("approved", 3000)), buy("execute", ofE)}, nil},
		"of a denial":                {[]step{buy("escalate", respond("denied", 3000)), buy("execute", ofE)}, []string{`DENIED_BUT_ACTED CRITICAL tr-2`}},
		"without a time of response": {[]step{buy("execute", answer)}, nil},
	} {
		t.Run(name, func(t *testing.T) { expect(t, whole(t, session.Found{}, c.steps...), c.want...) })
	}
}

// An execution is judged in the part with its answer; no part repeats a finding of an earlier
// one.
func TestAnswersInLaterParts(t *testing.T) {
	head := session.Head{AgentID: "a", SessionID: "s", Part: 1}
	buy := func(n int, kind, escalation string) step {
		return step{id: fmt.Sprint("tr-", n), second: n, kind: kind, action: "buy", escalate: escalation}
	}
	next := func(carry *session.NextPart) *session.NextPart {
		var resumed session.NextPart
		if err := json.Unmarshal([]byte(encoded(t, carry)), &resumed); err != nil {
			t.Fatal(err)
		}
		head.Part++
		return &resumed
	}
	v, carry := part(t, head, nil, session.Found{}, buy(1, "escalate", pending), buy(2, "execute", pending))
	expect(t, v)
	v, carry = part(t, head, next(carry), session.Found{}, buy(3, "recommend", answer))
	expect(t, v, `ACTED_BEFORE_ANSWER HIGH tr-2`)
	v, carry = part(t, head, next(carry), session.Found{}, buy(4, "execute", pending)) // answered in the previous part
	expect(t, v)
	head.LastPart = true
	v, carry = part(t, head, next(carry), session.Found{}, buy(5, "escalate", ofOther), buy(6, "execute", ofOther))
	expect(t, v, `ACTED_BEFORE_ANSWER HIGH tr-6`, `ESCALATION_UNANSWERED HIGH tr-5`)
	v, carry = part(t, head, next(carry), session.Found{}, step{id: "tr-late", second: 6})
	expect(t, v)
	v, _ = part(t, head, next(carry), session.Found{}, buy(7, "execute", ofOther), buy(8, "recommend", otherYes))
	expect(t, v, `ACTED_BEFORE_ANSWER HIGH tr-7`)
}

// Of two traces of the same time neither is earlier, if they name the escalations that they
// require and answer.
func TestOrderOfArrivalOfAnswersDoesNotMatter(t *testing.T) {
	blocks := []string{"", pending, answer, refusal, ofE, ofOther, otherYes, notRequired,
		`{"escalation_id":"e","principal_response":{}}`, respond("approved", 2)}
	rapid.Check(t, func(r *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) step {
			return step{second: rapid.IntRange(1, 4).Draw(r, "second"), kind: rapid.SampledFrom([]string{"execute", "escalate", "recommend"}).Draw(r, "kind"),
				action: "buy", escalate: rapid.SampledFrom(blocks).Draw(r, "block")}
		}), 1, 7).Draw(r, "steps")
		for i := range steps {
			steps[i].id = fmt.Sprintf("tr-%d", i)
		}
		if a, b := inOrder(t, steps), inOrder(t, rapid.Permutation(steps).Draw(r, "arrived")); a != b {
			r.Fatalf("in one order of arrival\n%s\nin another\n%s", a, b)
		}
	})
}

// Judging the next part does not change the carry it resumes from.
func TestNextPartIsNotModified(t *testing.T) {
	for _, c := range []struct {
		executed string
		late     string
		want     []string
	}{
		{pending, answer, nil},
		{notRequired, otherYes, []string{`ESCALATION_UNANSWERED HIGH tr-1`}},
	} {
		head := session.Head{AgentID: "a", SessionID: "s", Part: 1}
		execution := step{action: "buy", escalate: c.executed}
		_, carry := part(t, head, nil, session.Found{}, step{kind: "escalate", action: "buy", escalate: pending}, execution, execution)
		before := encoded(t, carry)
		head.Part, head.LastPart = 2, true
		for range 2 {
			v, _ := part(t, head, carry, session.Found{}, step{id: "late", second: 2, kind: "recommend", action: "buy", escalate: c.late})
			expect(t, v, c.want...)
			if after := encoded(t, carry); after != before {
				t.Fatalf("the state for the next part was\n%s\nand is\n%s", before, after)
			}
		}
	}
}
