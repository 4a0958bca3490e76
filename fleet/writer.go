package fleet

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/signature"
)

// chunkBytes is how much a writer allocates at a time; lineBytes is more than the length of any
// line.
const (
	chunkBytes = 256 << 10
	lineBytes  = 8 << 10
)

// writer writes the lines of the plan. Lines share chunks of memory and are never modified
// afterwards.
type writer struct {
	f      *Fleet
	chunk  []byte // its unused rest
	source *rand.PCG
	rng    *rand.Rand

	// Of the trace being written.
	b    behaviour
	n    int // its step
	step *step
	a    *agent
	at   time.Time
}

// line returns the bytes of one line.
func (w *writer) line(l line) []byte {
	if cap(w.chunk) < lineBytes {
		w.chunk = make([]byte, 0, chunkBytes)
	}
	id := uint64(l.step)
	if l.kind == broken {
		id = w.f.brokenID(l)
	}
	raw := w.trace(w.chunk, int(l.step), id, l.kind == conflict)
	w.chunk = raw[len(raw):]
	raw = raw[:len(raw):len(raw)]
	if key := w.a.key; key != nil {
		if w.b.forged {
			key = signingKey(^w.f.salt, 0)
		}
		var err error
		if raw, err = signature.Signed(raw, keyID, key); err != nil {
			panic(fmt.Sprintf("fleet: sign a trace: %v", err)) // the writer did not write a JSON object
		}
	}
	if l.kind != broken {
		return raw
	}
	spoil := spoils[l.spoil]
	if spoil.new == "" {
		return raw[:bytes.Index(raw, []byte(spoil.old))+len(spoil.old)]
	}
	return bytes.Replace(raw, []byte(spoil.old), []byte(spoil.new), 1)
}

// trace appends the trace of step n under the given id. Ids, names and texts of the fleet need
// no escapes in JSON, except the conditions of triggers.
func (w *writer) trace(b []byte, n int, id uint64, revised bool) []byte {
	w.f.seed(w.source, n)
	w.n, w.step, w.a = n, &w.f.steps[n], w.f.agentOf(n)
	w.f.behave(w.rng, &w.b, w.a, w.step)
	w.at = w.f.eventTime(w.step)
	b = fmt.Appendf(b, `{"trace_id":"tr-%016x","agent_id":"%s","card_id":"%s","timestamp":"%s"`,
		mix(w.f.salt+id), w.a.id, w.b.card, w.at.Format(timeForm))
	b = w.action(b)
	b = w.decision(b, revised)
	b = w.escalation(b)
	b = w.context(b)
	return append(b, '}')
}

const timeForm = "2006-01-02T15:04:05.000000Z"

// cents formats an amount of money with two decimals.
func cents(amount int64) string { return fmt.Sprintf("%d.%02d", amount/100, amount%100) }

// subject returns the subject of the decision. All traces of a session have the same subject.
func (w *writer) subject() string {
	return w.a.trade.Subjects[int(w.step.session)%len(w.a.trade.Subjects)]
}

// action appends the action block (AAP section 5.4).
func (w *writer) action(b []byte) []byte {
	target := w.b.act.Target
	b = fmt.Appendf(b, `,"action":{"type":"%s","name":"%s","category":"%s","target":{"type":"%s","identifier":"%s-%d"},"parameters":{"subject":"%s"`,
		w.b.typ, w.b.name, w.b.category, target, target, 1000+(w.n-int(w.step.back))%9000, w.subject())
	if w.b.amount > 0 {
		b = fmt.Appendf(b, `,"%s":%s,"currency":"%s"`, w.a.trade.Amount, cents(w.b.amount), w.b.currency)
	}
	return append(b, `}}`...)
}

// optionIDs name the alternatives of a decision.
var optionIDs = [...]string{"opt-a", "opt-b", "opt-c"}

// decision appends the decision block (AAP section 5.5).
func (w *writer) decision(b []byte, revised bool) []byte {
	count := 2 + w.rng.IntN(2)
	best := 78 + w.rng.IntN(20)
	b = append(b, `,"decision":{"alternatives_considered":[`...)
	for i, score := 0, best; i < count; i++ {
		if i > 0 {
			b = append(b, ',')
			score -= 6 + w.rng.IntN(14)
		}
		flags := ""
		if i == 2 {
			flags = `"needs_more_information"`
		}
		core, cost, risk := min(99, score+w.rng.IntN(10)), 30+w.rng.IntN(60), 2+w.rng.IntN(40)
		b = fmt.Appendf(b, `{"option_id":"%s","description":"%s","score":0.%02d,"scoring_factors":{"%s":0.%02d,"cost":0.%02d,"risk":0.%02d},"flags":[%s]}`,
			optionIDs[i], w.b.act.Options[i], score, w.a.trade.Core[0], core, cost, risk, flags)
	}
	b = fmt.Appendf(b, `],"selected":"%s","selection_reasoning":"For %s the first option scores 0.%02d. %s Decided on %s.`,
		optionIDs[0], w.subject(), best, w.a.trade.Grounds[w.rng.IntN(len(w.a.trade.Grounds))], strings.Join(w.b.values[:min(2, len(w.b.values))], " and "))
	if revised {
		b = append(b, " Reasoning revised after the fact."...)
	}
	return fmt.Appendf(b, `","values_applied":["%s"],"confidence":0.%02d}`, strings.Join(w.b.values, `","`), w.b.confidence)
}

// escalation appends the escalation block (AAP section 5.6).
func (w *writer) escalation(b []byte) []byte {
	b = fmt.Appendf(b, `,"escalation":{"evaluated":%t,"triggers_checked":[`, w.b.evaluated)
	for i, trigger := range w.a.trade.triggers() { // the agent's claim about each
		matched, claimed := w.b.matched(i)
		if trigger.condition == "" || !claimed {
			continue
		}
		if b[len(b)-1] == '}' {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"trigger":%s,"matched":%t`, strconv.Quote(trigger.condition), matched)
		if i == triggerCap && w.b.observed > 0 {
			b = fmt.Appendf(b, `,"value_observed":%s`, cents(w.b.observed))
		}
		b = append(b, '}')
	}
	b = fmt.Appendf(b, `],"required":%t`, w.b.required)
	if !w.b.required {
		b = append(b, `,"reason":"No trigger asks for the principal"`...)
		if w.b.cites {
			b = fmt.Appendf(b, `,"escalation_id":"%s"`, w.escalationID(w.n-1))
		}
		return append(b, '}')
	}
	b = fmt.Appendf(b, `,"reason":"A trigger asks for the principal","escalation_id":"%s","escalation_status":"%s"`, w.escalationID(w.n), w.b.status)
	if w.b.status == schema.EscalationApproved || w.b.status == schema.EscalationDenied {
		b = fmt.Appendf(b, `,"principal_response":{"decision":"%s","timestamp":"%s"`,
			cmp.Or(w.b.decision, w.b.status), w.at.Add(w.b.answered).Format(timeForm))
		if w.b.upTo > 0 {
			b = fmt.Appendf(b, `,"conditions":["%s <= %s"]`, w.a.trade.Amount, cents(w.b.upTo))
		}
		b = append(b, '}')
	}
	return append(b, '}')
}

// escalationID returns the id of the escalation of step n.
func (w *writer) escalationID(n int) string { return fmt.Sprintf("esc-%016x", mix(w.f.salt^uint64(n))) }

// answerDelay is how long before the trace the principal answered.
const answerDelay = 40 * time.Second

var clients = [...]string{"web", "mobile", "api", "voice"}

// context appends the context block (AAP section 5.7).
func (w *writer) context(b []byte) []byte {
	b = fmt.Appendf(b, `,"context":{"session_id":"%s","conversation_turn":%d,"prior_trace_ids":[`, w.f.sessionID(w.step.session), w.b.turn)
	for back := min(2, int(w.step.turn)-1); back > 0; back-- {
		b = fmt.Appendf(b, `"%s"`, w.f.traceID(w.n-back))
		if back > 1 {
			b = append(b, ',')
		}
	}
	b = fmt.Appendf(b, `],"environment":{"client":"%s","locale":"en-GB"},"metadata":{"model":"simulated-1","latency_ms":%d`,
		clients[int(w.step.session)%len(clients)], 120+w.rng.IntN(2400))
	if w.b.shadow > 0 {
		b = fmt.Appendf(b, `,"%s":%s`, w.a.trade.Amount, cents(w.b.shadow))
	}
	if deny := w.a.trade.Deny.Metadata; w.b.holds[triggerDeny] {
		b = fmt.Appendf(b, `,%s`, deny[1:len(deny)-1])
	}
	if log := w.a.trade.Log.Metadata; w.b.holds[triggerLog] {
		b = fmt.Appendf(b, `,%s`, log[1:len(log)-1])
	}
	if w.step.number > 0 {
		b = fmt.Appendf(b, `,"sequence_number":%d`, w.step.number)
	}
	if w.step.end {
		b = append(b, `,"session_end":true`...)
	}
	if w.b.acted() {
		b = w.execution(b)
	}
	return append(b, `}}`...)
}

// execution appends the execution block, a convention of Plumbline. The inputs of an approved
// action contain the approval, which redaction must hide.
func (w *writer) execution(b []byte) []byte {
	token := ""
	if w.b.status == schema.EscalationApproved {
		token = fmt.Sprintf(`,"approval_token":"%016x"`, mix(^w.f.salt^uint64(w.n)))
	}
	items, cost := 1+w.rng.IntN(12), w.rng.IntN(9)
	return fmt.Appendf(b, `,"execution":{"tool_name":"%s.%s","inputs":{"subject":"%s"%s},"outputs":{"status":"done","reference":"%016x","items":%d},"cost_cents":%d,"error":""}`,
		w.a.trade.Name, w.b.act.Name, w.subject(), token, mix(w.f.salt+uint64(w.n)<<20), items, cost)
}
