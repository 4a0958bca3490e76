package queries_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// small is a fleet that has every fault of the page: shop breaks its card, drifter drifts, guest names a
// card that nobody has registered, and desk is silent.
type small struct {
	cards      [][]byte
	records    []stream.Record
	violations map[string]map[string]bool
	sealed     []store.SessionKey // sessions of shop whose end is requested
	began      time.Time
}

// smallCard returns a card that was issued some days before the fleet began.
func (f *small) card(cardID, agent string, days int, expires, forbidden string) {
	text := fmt.Sprintf(`{"aap_version":"0.1.0","card_id":%q,"agent_id":%q,"issued_at":%q,%s`+
		`"principal":{"type":"human","relationship":"delegated_authority"},"values":{"declared":["honesty"]},`+
		`"autonomy_envelope":{"bounded_actions":["search: look for goods","buy"],"forbidden_actions":[%q],"escalation_triggers":[`+
		`{"condition":"refund_amount > 100","action":"deny","reason":"too much"},{"condition":"transfer_amount > 50","action":"escalate","reason":"ask"}]},`+
		`"audit_commitment":{"trace_format":"ap-trace-v1","retention_days":90,"queryable":false}}`,
		cardID, agent, f.began.AddDate(0, 0, -days).Format(time.RFC3339), expires, forbidden)
	f.cards = append(f.cards, []byte(text))
}

// trace adds a trace. Traces are a second apart. rest has further members of the trace, context those
// of its context.
func (f *small) trace(id, agent, cardID, session, action, value, rest, context string) {
	text := fmt.Sprintf(`{"trace_id":%q,"agent_id":%q,"card_id":%q,"timestamp":%q,"action":%s,`+
		`"decision":{"alternatives_considered":[{"option_id":"o","description":"d","score":0.9}],"selected":"o","selection_reasoning":"because of %s","values_applied":[%q],"confidence":0.9},`+
		`%s"context":{"session_id":%q%s}}`,
		id, agent, cardID, f.began.Add(time.Duration(len(f.records))*time.Second).Format(time.RFC3339), action, id, value, rest, session, context)
	f.records = append(f.records, pipelinetest.Record(agent, []byte(text)))
}

// violates notes that traces have a violation.
func (f *small) violates(kind string, ids ...string) {
	if f.violations[kind] == nil {
		f.violations[kind] = map[string]bool{}
	}
	for _, id := range ids {
		f.violations[kind][id] = true
	}
}

// Actions of the small fleet.
const (
	search   = `{"type":"execute","name":"search","category":"bounded"}`
	buy      = `{"type":"execute","name":"buy","category":"bounded"}`
	pay      = `{"type":"execute","name":"pay","category":"forbidden"}`
	refund   = `{"type":"execute","name":"refund","category":"escalation_trigger","parameters":{"refund_amount":200}}`
	ask      = `{"type":"escalate","name":"transfer","category":"escalation_trigger","parameters":{"transfer_amount":60}}`
	refuse   = `{"type":"deny","name":"search","category":"bounded","parameters":{"goods":"weapons"}}`
	transfer = `{"type":"execute","name":"transfer","category":"escalation_trigger","parameters":{"transfer_amount":60}}`
)

// asked returns the escalation of a trace that asks, or reports an answer.
func asked(id, status string) string {
	return fmt.Sprintf(`"escalation":{"evaluated":true,"required":true,"escalation_id":%q,"escalation_status":%q},`, id, status)
}

// executed returns the metadata of an execution.
func executed(number int, tool string, cents int, failure string) string {
	return fmt.Sprintf(`,"metadata":{"sequence_number":%d,"execution":{"tool_name":%q,"cost_cents":%d,"error":%q}}`, number, tool, cents, failure)
}

func newSmall() *small {
	f := &small{violations: map[string]map[string]bool{}, began: time.Now().UTC().Truncate(time.Second).Add(-time.Hour)}
	f.card("ac-shop-0", "shop", 60, "", "pay")
	f.card("ac-shop", "shop", 30, fmt.Sprintf(`"expires_at":%q,`, f.began.AddDate(0, 0, 3).Format(time.RFC3339)), "pay")
	f.card("ac-desk", "desk", 30, "", "pay")
	f.card("ac-desk-1", "desk", 20, "", "pay")
	f.card("ac-drift", "drifter", 30, "", "wire")
	shop := func(id, session, action, value, rest, context string) {
		f.trace(id, "shop", "ac-shop", session, action, value, rest, context)
	}

	shop("t-1", "s-1", search, "honesty", "", executed(1, "shop.search", 5, ""))
	shop("t-2", "s-1", buy, "profit", "", executed(2, "shop.buy", 12, "out of stock"))
	shop("t-4", "s-1", pay, "honesty", "", executed(4, "bank.pay", 40, "")) // no trace has number 3
	f.violates(schema.UndeclaredValue, "t-2")
	f.violates(schema.ForbiddenAction, "t-4")

	shop("t-refund", "s-2", refund, "honesty", "", "") // one trace: denied, and done
	shop("t-ask", "s-2", ask, "honesty", asked("esc-1", "pending"), "")
	shop("t-no", "s-2", ask, "honesty", asked("esc-1", "denied"), "")
	shop("t-do", "s-2", transfer, "honesty", "", "") // several traces: denied, and done
	f.violates(schema.MissedEscalation, "t-refund", "t-do")

	shop("t-by-decision", "s-6", ask, "honesty", asked("esc-4", "pending"), "") // answered in another word
	shop("t-decision", "s-6", ask, "honesty", strings.Replace(asked("esc-4", "pending"), "}", `,"principal_response":{"decision":"Approved"}}`, 1), "")
	shop("t-by-action", "s-7", ask, "honesty", `"escalation":{"evaluated":true,"required":true},`, "") // answered under an id
	shop("t-action", "s-7", ask, "honesty", asked("esc-5", "timeout"), "")
	shop("t-plain", "s-8", ask, "honesty", `"escalation":{"evaluated":true,"required":true},`, "") // neither id nor status: it waits
	shop("m-1", "s-9", search, "honesty", "", executed(7, "shop.search", 0, ""))                   // not every trace has a number
	shop("m-2", "s-9", search, "honesty", "", "")
	shop("m-3", "s-9", search, "honesty", "", executed(6, "shop.search", 0, ""))
	shop("n-2", "s-10", search, "honesty", "", executed(9, "shop.search", 0, "")) // every trace has one
	shop("n-1", "s-10", search, "honesty", "", executed(8, "shop.search", 0, ""))

	for n := range 3 { // it refuses the same again and again
		shop(fmt.Sprintf("r-%d", n+1), "s-11", refuse, "honesty", "", "")
	}

	shop("t-over", "s-3", ask, "honesty", asked("esc-2", "pending"), "")
	shop("t-wait", "s-4", ask, "honesty", asked("esc-3", "pending"), "")
	for _, session := range []string{"s-1", "s-2", "s-3"} {
		f.sealed = append(f.sealed, store.SessionKey{AgentID: "shop", SessionID: session})
	}

	shop("t-x", "s-5", search, "honesty", "", "") // one id, two contents
	shop("t-x", "s-5", buy, "honesty", "", "")
	f.trace("g-1", "guest", "ac-none", "g", search, "honesty", "", "")
	for n := range 10 {
		f.trace(fmt.Sprintf("d-%d", n), "drifter", "ac-drift", "d", `{"type":"recommend","name":"search","category":"bounded"}`, "honesty", "", "")
	}
	for n := 10; n < 14; n++ {
		id := fmt.Sprintf("d-%d", n)
		f.trace(id, "drifter", "ac-drift", "d", `{"type":"execute","name":"wire","category":"forbidden"}`, "profit", "", "")
		f.violates(schema.ForbiddenAction, id)
		f.violates(schema.UndeclaredValue, id)
	}
	f.records = append(f.records, pipelinetest.Record("shop", []byte("{broken")))
	return f
}
