package session_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/schema"
)

const (
	pending  = `{"required":true,"escalation_id":"e","escalation_status":"pending"}`
	answer   = `{"required":true,"escalation_id":"e","escalation_status":"approved"}`
	cheap    = `{"required":true,"escalation_id":"e","escalation_status":"approved","principal_response":{"decision":"approved","conditions":["price <= 50","vendor == \"acme\""]}}`
	refusal  = `{"required":true,"escalation_id":"e","escalation_status":"denied"}`
	bothWays = `{"required":true,"escalation_id":"e","escalation_status":"denied","principal_response":{"decision":"Approved"}}`
	unnamed  = `{"required":true}`
	ofE      = `{"required":false,"escalation_id":"e"}`
	ofOther  = `{"required":true,"escalation_id":"other","escalation_status":"pending"}`
	otherYes = `{"required":true,"escalation_id":"other","escalation_status":"approved"}`
	otherNo  = `{"escalation_id":"other","escalation_status":"denied"}`

	notRequired = `{"required":false,"escalation_status":"pending"}`
	openUnnamed = `{"required":true,"escalation_status":"pending"}`
)

func TestEscalations(t *testing.T) {
	buy := func(kind, escalation string) step { return step{kind: kind, action: "buy", escalate: escalation} }
	unanswered := `ESCALATION_UNANSWERED MEDIUM tr-1: escalation "e" of "buy" is required, and the session reports no approval, denial or timeout of it`
	at2 := func(action, kind, escalation string) step { // at second 2
		return step{second: 2, kind: kind, action: action, escalate: escalation}
	}
	for name, c := range map[string]struct {
		steps []step
		want  []string
	}{
		"pending to the end":         {[]step{buy("escalate", pending), {}}, []string{unanswered}},
		"asked twice":                {[]step{buy("escalate", pending), buy("escalate", pending)}, []string{unanswered}},
		"answered":                   {[]step{buy("escalate", pending), buy("execute", answer)}, nil},
		"answered by a denial":       {[]step{buy("escalate", pending), buy("recommend", refusal)}, nil},
		"timed out":                  {[]step{buy("escalate", pending), buy("recommend", `{"required":true,"escalation_id":"e","escalation_status":"timeout"}`)}, nil},
		"a response without status":  {[]step{buy("escalate", pending), buy("recommend", `{"escalation_id":"e","principal_response":{"decision":"Approved"}}`)}, nil},
		"timed out by the response":  {[]step{buy("escalate", pending), buy("recommend", `{"escalation_id":"e","principal_response":{"decision":"timeout"}}`)}, nil},
		"an unknown decision":        {[]step{buy("escalate", pending), buy("recommend", `{"escalation_id":"e","principal_response":{"decision":"later"}}`)}, []string{unanswered}},
		"an empty response":          {[]step{buy("escalate", pending), buy("recommend", `{"escalation_id":"e","principal_response":{}}`)}, []string{unanswered}},
		"a null decision":            {[]step{buy("escalate", pending), buy("recommend", `{"escalation_id":"e","escalation_status":null,"principal_response":{"decision":null}}`)}, []string{unanswered}},
		"answers contradict":         {[]step{buy("escalate", pending), buy("recommend", bothWays)}, []string{"CONTRADICTORY_ANSWER HIGH tr-2"}},
		"answered at its own time":   {[]step{{second: 2, kind: "recommend", action: "buy", escalate: answer}, {second: 2, kind: "escalate", action: "buy", escalate: pending}}, nil},
		"asked again since":          {[]step{buy("recommend", answer), buy("escalate", pending)}, []string{`ESCALATION_UNANSWERED MEDIUM tr-2`}},
		"answered under another id":  {[]step{buy("escalate", pending), buy("recommend", otherYes)}, []string{unanswered}},
		"answered without an id":     {[]step{buy("escalate", pending), buy("recommend", `{"required":true,"escalation_status":"approved"}`)}, nil},
		"answered for another":       {[]step{buy("escalate", pending), {escalate: `{"required":true,"escalation_status":"approved"}`}}, []string{unanswered}},
		"executed while it was open": {[]step{buy("escalate", pending), buy("execute", ofE)}, []string{`ESCALATION_UNANSWERED HIGH tr-1: escalation "e" of "buy" is required, and the session reports no approval, denial or timeout of it, but the action was executed`}},
		"executed on its own":        {[]step{buy("escalate", pending), buy("execute", "")}, []string{`ESCALATION_UNANSWERED HIGH tr-1`}},
		"something else executed":    {[]step{buy("escalate", pending), {action: "buy", params: `{"what":"else"}`}}, []string{unanswered}},
		"executed at once":           {[]step{buy("execute", unnamed)}, []string{`ESCALATION_UNANSWERED HIGH tr-1: an escalation of "buy"`}},
		"not required":               {[]step{buy("execute", `{"required":false,"escalation_status":"pending"}`)}, nil},
		"one id, two actions":        {[]step{buy("escalate", pending), {kind: "escalate", action: "sell", escalate: pending}}, []string{unanswered}},
		"no id, two actions":         {[]step{buy("escalate", unnamed), {kind: "escalate", action: "sell", escalate: unnamed}}, []string{`ESCALATION_UNANSWERED MEDIUM tr-1`, `ESCALATION_UNANSWERED MEDIUM tr-2`}},
		"executed under another id":  {[]step{buy("escalate", pending), buy("execute", `{"required":false,"escalation_id":"other"}`)}, []string{unanswered}},
		"renamed under its id":       {[]step{buy("escalate", pending), {action: "renamed", escalate: ofE}}, []string{`ESCALATION_UNANSWERED HIGH tr-1`}},
		"unnamed, executed under id": {[]step{buy("escalate", unnamed), buy("execute", ofE)}, []string{`ESCALATION_UNANSWERED HIGH tr-1`}},
		"executed at its own time":   {[]step{at2("buy", "escalate", pending), at2("buy", "execute", ofE)}, []string{`ESCALATION_UNANSWERED MEDIUM tr-1`}},
		"another asked at its time":  {[]step{at2("buy", "escalate", pending), at2("buy", "execute", unnamed)}, []string{`ESCALATION_UNANSWERED HIGH tr-2`, `ESCALATION_UNANSWERED MEDIUM tr-1`}},
		"no id, answered first":      {[]step{at2("buy", "recommend", `{"escalation_status":"approved"}`), at2("buy", "escalate", pending)}, nil},
		"elsewhere, answered first":  {[]step{at2("confirm", "recommend", answer), at2("buy", "escalate", pending)}, nil},
		"another, answered first":    {[]step{at2("sell", "recommend", answer), at2("buy", "escalate", unnamed)}, []string{`ESCALATION_UNANSWERED MEDIUM tr-2`}},
		"neither has an id":          {[]step{at2("sell", "recommend", `{"escalation_status":"approved"}`), at2("buy", "escalate", unnamed)}, []string{`ESCALATION_UNANSWERED MEDIUM tr-2`}},
	} {
		t.Run(name, func(t *testing.T) { expect(t, whole(t, session.Found{}, c.steps...), c.want...) })
	}
}

func TestDenials(t *testing.T) {
	pay := func(escalation string) step { return step{action: "pay", params: `{"order":1}`, escalate: escalation} }
	const shop, bank = `{"type":"account","identifier":"shop"}`, `{"type":"account","identifier":"bank"}`
	denial := step{kind: "escalate", action: "pay", params: `{"order":1}`, escalate: refusal}
	at1 := func(escalation string) step { // at second 1
		return step{second: 1, kind: "recommend", action: "pay", params: `{"order":1}`, escalate: escalation}
	}
	critical := `DENIED_BUT_ACTED CRITICAL tr-2: "pay" is executed after its denial in trace "tr-1"`
	for name, c := range map[string]struct {
		steps []step
		want  []string
	}{
		"under its id":                    {[]step{denial, {action: "renamed", escalate: ofE}}, []string{`DENIED_BUT_ACTED CRITICAL tr-2: "renamed" is executed after its denial`}},
		"by its name":                     {[]step{denial, pay("")}, []string{critical}},
		"with other amounts":              {[]step{denial, {action: "pay", params: `{"order":2}`}, {action: "pay", params: `{"order":3}`}}, []string{`DENIED_BUT_ACTED MEDIUM tr-2: "pay" is executed with other amounts`}},
		"about something else":            {[]step{denial, {action: "pay", params: `{"order":1,"to":"x"}`}}, nil},
		"another action":                  {[]step{denial, {action: "search"}}, nil},
		"only recommended":                {[]step{denial, {kind: "recommend", action: "pay", params: `{"order":1}`}}, nil},
		"approved since":                  {[]step{denial, {kind: "recommend", action: "pay", escalate: answer}, pay("")}, nil},
		"approved with it":                {[]step{denial, pay(answer)}, nil},
		"approved again":                  {[]step{denial, pay(otherYes), pay("")}, nil},
		"escalated again, open":           {[]step{denial, pay(ofOther)}, []string{critical, `ACTED_BEFORE_ANSWER HIGH tr-2`, `ESCALATION_UNANSWERED HIGH tr-2`}},
		"approved again, but not it":      {[]step{denial, {kind: "recommend", action: "pay", escalate: otherYes}, pay(ofE)}, []string{`DENIED_BUT_ACTED CRITICAL tr-3`}},
		"at the time of the denial":       {[]step{{second: 1, kind: "escalate", action: "pay", params: `{"order":1}`, escalate: refusal}, {second: 1, action: "pay", params: `{"order":1}`}}, nil},
		"before the denial":               {[]step{pay(""), denial}, nil},
		"denied by the agent":             {[]step{{kind: "deny", action: "pay", params: `{"order":1}`}, pay(""), pay("")}, []string{`DENIED_BUT_ACTED MEDIUM tr-2: "pay" is executed although the agent denied the same in trace "tr-1"`}},
		"denied, then approved":           {[]step{{kind: "deny", action: "pay", params: `{"order":1}`}, pay(answer), pay("")}, nil},
		"denied, another executed":        {[]step{{kind: "deny", action: "pay", params: `{"order":2}`}, pay("")}, nil},
		"denied twice by the agent":       {[]step{{kind: "deny", action: "pay", params: `{"order":1}`}, {kind: "deny", action: "pay", params: `{"order":1}`}, pay(""), pay("")}, []string{`DENIED_BUT_ACTED MEDIUM tr-3`}},
		"by the agent, elsewhere":         {[]step{{kind: "deny", action: "pay", target: shop}, {action: "pay", target: bank}, {action: "pay", target: shop}}, []string{`DENIED_BUT_ACTED MEDIUM tr-3`}},
		"on another target":               {[]step{{kind: "escalate", action: "pay", target: shop, escalate: refusal}, {action: "pay", target: bank}}, nil},
		"parameters reordered":            {[]step{{kind: "escalate", action: "pay", params: `{"a":"x","b":"y"}`, escalate: refusal}, {action: "pay", params: `{"b":"y","a":"x"}`}}, []string{`DENIED_BUT_ACTED CRITICAL tr-2`}},
		"approved, denied, approved":      {[]step{{kind: "recommend", action: "pay", params: `{"order":1}`, escalate: cheap}, denial, {kind: "recommend", action: "pay", escalate: answer}, pay("")}, nil},
		"conditions on another":           {[]step{{kind: "recommend", action: "buy", escalate: cheap}, {kind: "recommend", action: "pay", params: `{"order":1}`, escalate: otherNo}, pay("")}, []string{`DENIED_BUT_ACTED CRITICAL tr-3`}},
		"approved together with another":  {[]step{{kind: "recommend", action: "buy", escalate: cheap}, {kind: "recommend", action: "pay", params: `{"order":1}`, escalate: otherNo}, {kind: "recommend", action: "pay", escalate: otherYes}, pay("")}, nil},
		"approved at its time":            {[]step{at1(refusal), at1(answer), pay("")}, nil}, // neither answer is later
		"approved first, at its time":     {[]step{at1(answer), at1(refusal), pay("")}, nil},
		"another approved, so":            {[]step{at1(otherYes), at1(refusal), pay("")}, nil},
		"approved, then denied":           {[]step{at1(answer), {second: 2, kind: "recommend", action: "pay", params: `{"order":1}`, escalate: refusal}, pay("")}, []string{`DENIED_BUT_ACTED CRITICAL tr-3`}},
		"another approved, and denied":    {[]step{at1(otherYes), {second: 2, kind: "recommend", action: "pay", params: `{"order":1}`, escalate: refusal}, pay("")}, []string{`DENIED_BUT_ACTED CRITICAL tr-3`}},
		"at the time of another approval": {[]step{{second: 1, kind: "recommend", action: "buy", escalate: otherYes}, at1(refusal), pay("")}, []string{`DENIED_BUT_ACTED CRITICAL tr-3`}},
		"two denials at one time":         {[]step{at1(refusal), {second: 1, kind: "recommend", action: "pay", params: `{"order":2}`, escalate: otherNo}, {action: "pay", params: `{"order":2}`}}, []string{`DENIED_BUT_ACTED CRITICAL tr-3`}}, // the one reported last counts
		"says so itself":                  {[]step{pay(refusal)}, nil},                                                                                                                                                                         // the trace's own verdict has a finding
	} {
		t.Run(name, func(t *testing.T) {
			v := whole(t, session.Found{}, c.steps...)
			expect(t, v, c.want...)
			if v.Verified != (v.RecommendedAction != schema.Deny) {
				t.Errorf("verified is %v, recommended %s", v.Verified, v.RecommendedAction)
			}
		})
	}
}

// Of traces of the same time none is later. An execution may depend on an approval that another
// of them reports, and is not later than a denial that one of them reports.
func TestDenialsAtTheTimeOfOtherAnswers(t *testing.T) {
	const yes = `{"escalation_status":"approved"}`
	at := func(second int, kind, action, escalation string) step {
		return step{id: fmt.Sprint("tr-", second, kind), second: second, kind: kind, action: action, escalate: escalation}
	}
	denial, declined := at(1, "escalate", "pay", refusal), at(1, "deny", "pay", "")
	critical, medium := []string{`DENIED_BUT_ACTED CRITICAL tr-2execute`}, []string{`DENIED_BUT_ACTED MEDIUM tr-2execute`}
	for name, c := range map[string]struct {
		before    step
		execution step
		beside    step // of the same time
		want      []string
	}{
		"approved":                      {denial, at(2, "execute", "pay", ""), at(2, "recommend", "pay", answer), nil},
		"approved a second later":       {denial, at(2, "execute", "pay", ""), at(3, "recommend", "pay", answer), critical},
		"approved under another id":     {denial, at(2, "execute", "pay", ""), at(2, "recommend", "pay", otherYes), nil},
		"another action approved":       {denial, at(2, "execute", "pay", ""), at(2, "recommend", "sell", otherYes), critical},
		"named, approved":               {denial, at(2, "execute", "pay", ofE), at(2, "recommend", "confirm", answer), nil},
		"named, another approved":       {denial, at(2, "execute", "pay", ofE), at(2, "recommend", "pay", otherYes), critical},
		"named, approved without an id": {denial, at(2, "execute", "pay", ofE), at(2, "recommend", "pay", yes), nil},
		"named otherwise, approved":     {denial, at(2, "execute", "pay", `{"escalation_id":"other"}`), at(2, "recommend", "confirm", otherYes), nil},
		"named otherwise, not approved": {denial, at(2, "execute", "pay", `{"escalation_id":"third"}`), at(2, "recommend", "confirm", otherYes), critical},
		"renamed, approved":             {denial, at(2, "execute", "renamed", ofE), at(2, "recommend", "confirm", yes), critical},
		"denied again":                  {denial, at(2, "execute", "pay", ""), at(2, "recommend", "pay", refusal), critical},
		"denied under another id":       {denial, at(2, "execute", "pay", ""), at(2, "recommend", "pay", otherNo), critical},
		"something else denied":         {denial, at(2, "execute", "pay", ""), step{id: "else", second: 2, kind: "recommend", action: "pay", params: `{"order":2}`, escalate: otherNo}, critical},
		"another action denied before":  {at(1, "escalate", "sell", otherNo), at(2, "execute", "pay", ""), at(2, "recommend", "pay", refusal), nil},
		"other amounts denied before":   {denial, step{id: "tr-2execute", second: 2, action: "pay", params: `{"order":2}`}, step{id: "else", second: 2, kind: "recommend", action: "pay", params: `{"order":2}`, escalate: otherNo}, []string{`DENIED_BUT_ACTED MEDIUM tr-2execute`}},
		"declined, another approved so": {at(1, "recommend", "sell", answer), at(2, "execute", "pay", ""), declined, medium},
		"declined, approved":            {declined, at(2, "execute", "pay", ""), at(2, "recommend", "pay", answer), nil},
		"declined, another approved":    {declined, at(2, "execute", "pay", ""), at(2, "recommend", "sell", answer), medium},
		"declined again":                {declined, at(2, "execute", "pay", ""), at(2, "deny", "pay", ""), medium},
		"declined at its time":          {at(1, "recommend", "search", ""), at(2, "execute", "pay", ""), at(2, "deny", "pay", ""), nil},
		"declined and approved before":  {at(1, "recommend", "pay", answer), at(2, "execute", "pay", ""), declined, nil},
		"approved, then declined":       {at(1, "recommend", "pay", answer), at(3, "execute", "pay", ""), at(2, "deny", "pay", ""), []string{`DENIED_BUT_ACTED MEDIUM tr-3execute`}},
	} {
		for _, beside := range [][]step{{c.execution, c.beside}, {c.beside, c.execution}} {
			log := append([]step{c.before}, beside...)
			slices.SortStableFunc(log, func(a, b step) int { return cmp.Compare(a.second, b.second) })
			t.Run(name+", "+beside[0].kind+" first", func(t *testing.T) { expect(t, whole(t, session.Found{}, log...), c.want...) })
		}
	}
}

func TestConditionsOfApprovals(t *testing.T) {
	approval := step{kind: "escalate", action: "buy", escalate: cheap}
	buy := func(params, escalation string) step { return step{action: "buy", params: params, escalate: escalation} }
	price := "APPROVAL_CONDITION_BROKEN HIGH tr-2: the approval in trace \"tr-1\" asks for `price <= 50`, which this trace breaks"
	for name, c := range map[string]struct {
		steps []step
		want  []string
	}{
		"kept":                      {[]step{approval, buy(`{"price":50,"vendor":"acme"}`, "")}, nil},
		"absent fields":             {[]step{approval, buy(`{}`, "")}, nil},
		"broken by name":            {[]step{approval, buy(`{"price":51}`, "")}, []string{price}},
		"broken under its id":       {[]step{approval, {action: "purchase", params: `{"price":51}`, escalate: ofE}}, []string{price}},
		"both broken":               {[]step{approval, buy(`{"price":51,"vendor":"x"}`, "")}, []string{price, "APPROVAL_CONDITION_BROKEN HIGH tr-2: the approval in trace \"tr-1\" asks for `vendor == \"acme\"`"}},
		"used at once":              {[]step{buy(`{"price":50}`, cheap), buy(`{"price":51}`, "")}, []string{"APPROVAL_CONDITION_BROKEN MEDIUM tr-2"}},
		"used at once, and again":   {[]step{buy(`{"price":50}`, cheap), buy(`{"price":51}`, ofE)}, []string{price}},
		"by the second execution":   {[]step{approval, buy(`{"price":50}`, ""), buy(`{"price":51}`, "")}, []string{"APPROVAL_CONDITION_BROKEN HIGH tr-3"}},
		"another action":            {[]step{approval, {action: "search", params: `{"price":51}`}}, nil},
		"another escalation":        {[]step{approval, buy(`{"price":51}`, otherYes)}, nil},
		"only recommended":          {[]step{approval, {kind: "recommend", action: "buy", params: `{"price":51}`}}, nil},
		"repeated without an id":    {[]step{approval, {kind: "recommend", action: "buy", escalate: `{"escalation_status":"approved"}`}, buy(`{"price":51}`, "")}, []string{"APPROVAL_CONDITION_BROKEN HIGH tr-3"}},
		"under its own conditions":  {[]step{approval, buy(`{"price":51}`, `{"escalation_id":"e","principal_response":{"decision":"approved","conditions":["price <= 60"]}}`)}, nil},
		"repeated without them":     {[]step{approval, buy(`{"price":51}`, answer), buy(`{"price":52}`, ofE)}, []string{price, "APPROVAL_CONDITION_BROKEN HIGH tr-3"}},
		"approved again by another": {[]step{approval, {kind: "recommend", action: "buy", escalate: `{"escalation_id":"e","principal_response":{"decision":"approved","timestamp":"2026-02-01T00:00:02Z"}}`}, buy(`{"price":51}`, "")}, nil},
		"its own trace":             {[]step{buy(`{"price":51}`, cheap)}, nil}, // the trace's own verdict has a finding
	} {
		t.Run(name, func(t *testing.T) { expect(t, whole(t, session.Found{}, c.steps...), c.want...) })
	}
}

func TestConditionsThatCannotBeEvaluatedAreReported(t *testing.T) {
	v := whole(t, session.Found{}, step{kind: "escalate", escalate: `{"escalation_id":"e","principal_response":{"decision":"approved","conditions":["only on Fridays","amount <"]}}`}, step{escalate: ofE})
	if len(v.Findings) > 0 || len(v.Metadata.Unchecked) != 1 || v.Metadata.Unchecked[0] != "conditions of approvals: 2 cannot be evaluated" {
		t.Errorf("unchecked is %q, found\n%s", v.Metadata.Unchecked, said(v))
	}
}

func TestTurns(t *testing.T) {
	v := whole(t, session.Found{}, step{turn: 1}, step{turn: 1}, step{turn: 4}, step{}, step{turn: 3}, step{turn: 4})
	expect(t, v, "TURN_ORDER MEDIUM tr-5: turn 3 follows turn 4")
	if v.FindingCounts[schema.TurnOrder] != 1 || v.RecommendedAction != schema.Review {
		t.Errorf("verdict is %s", encoded(t, v))
	}
	expect(t, whole(t, session.Found{}, step{turn: 1}, step{turn: 3, second: 5}, step{turn: 2, second: 5}, step{turn: 2, second: 6}))
}

// A part continues from the previous one, through a JSON record.
func TestPartsAreOneSession(t *testing.T) {
	head := session.Head{AgentID: "a", SessionID: "s", Part: 1}
	first, carry := part(t, head, nil, session.Found{},
		step{number: 1, turn: 1}, step{number: 2, turn: 5, kind: "escalate", action: "buy", escalate: pending},
		step{number: 3, kind: "escalate", action: "pay", escalate: `{"escalation_id":"p","escalation_status":"denied"}`},
		step{number: 4, kind: "escalate", action: "sell", escalate: `{"escalation_id":"c","principal_response":{"decision":"approved","conditions":["price <= 50"]}}`})
	expect(t, first) // the session is not over: the escalation may still be answered
	var resumed session.NextPart
	if err := json.Unmarshal([]byte(encoded(t, carry)), &resumed); err != nil {
		t.Fatal(err)
	}
	head.Part, head.LastPart = 2, true
	second, carry := part(t, head, &resumed, session.Found{},
		step{id: "tr-5", number: 7, second: 11, turn: 2}, step{id: "tr-6", number: 8, second: 12, action: "pay"},
		step{id: "tr-7", number: 9, second: 13, action: "sell", params: `{"price":51}`})
	expect(t, second, `DENIED_BUT_ACTED CRITICAL tr-6`, `APPROVAL_CONDITION_BROKEN HIGH tr-7`, `TURN_ORDER MEDIUM tr-5`,
		`TRACE_GAP MEDIUM tr-5: no trace has sequence number 5..6`, `ESCALATION_UNANSWERED MEDIUM tr-2`)
	// Late traces are neither out of order nor reported again.
	head.Part = 3
	third, _ := part(t, head, carry, session.Found{}, step{id: "tr-8", number: 5, second: 5, turn: 1})
	expect(t, third)
}
