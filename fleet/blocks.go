package fleet

import (
	"cmp"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// action appends the action block (AAP section 5.4).
func (w *writer) action(b []byte, n int, a *agent) []byte {
	b = append(append(b, `,"action":{"type":"`...), w.b.typ...)
	b = append(append(b, `","name":"`...), w.b.name...)
	b = append(append(b, `","category":"`...), w.b.category...)
	b = append(append(b, `","target":{"type":"`...), w.b.act.target...)
	b = append(append(b, `","identifier":"`...), w.b.act.target...)
	b = number(b, "-", int64(1000+n%9000))
	b = append(b, `"},"parameters":{`...)
	b = append(append(b, `"subject":"`...), w.subject(a)...)
	b = append(b, '"')
	if w.b.amount > 0 {
		b = append(append(b, `,"`...), a.trade.amount...)
		b = cents(append(b, `":`...), w.b.amount)
		b = append(append(b, `,"currency":"`...), w.b.currency...)
		b = append(b, '"')
	}
	return append(b, `}}`...)
}

// subject returns the subject of the decision. All traces of a session have the same subject.
func (w *writer) subject(a *agent) string {
	return a.trade.subjects[w.session%len(a.trade.subjects)]
}

// optionIDs name the alternatives of a decision.
var optionIDs = [...]string{"opt-a", "opt-b", "opt-c"}

// decision appends the decision block (AAP section 5.5).
func (w *writer) decision(b []byte, a *agent, revised bool) []byte {
	count := 2 + w.rng.IntN(2)
	best := 78 + w.rng.IntN(20)
	b = append(b, `,"decision":{"alternatives_considered":[`...)
	score := best
	for i := range count {
		if i > 0 {
			b = append(b, ',')
			score -= 6 + w.rng.IntN(14)
		}
		b = w.alternative(b, a, i, score)
	}
	b = append(append(b, `],"selected":"`...), optionIDs[0]...)
	b = append(b, `","selection_reasoning":"`...)
	b = w.reasoning(b, a, best, revised)
	b = append(b, `","values_applied":[`...)
	for i, value := range w.b.values {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), value...), '"')
	}
	b = hundredths(append(b, `],"confidence":`...), w.b.confidence)
	return append(b, '}')
}

func (w *writer) alternative(b []byte, a *agent, i, score int) []byte {
	b = append(append(b, `{"option_id":"`...), optionIDs[i]...)
	b = append(append(b, `","description":"`...), w.b.act.options[i]...)
	b = hundredths(append(b, `","score":`...), score)
	b = append(append(b, `,"scoring_factors":{"`...), a.trade.core[0]...)
	b = hundredths(append(b, `":`...), min(99, score+w.rng.IntN(10)))
	b = hundredths(append(b, `,"cost":`...), 30+w.rng.IntN(60))
	b = hundredths(append(b, `,"risk":`...), 2+w.rng.IntN(40))
	b = append(b, `},"flags":[`...)
	if i == 2 {
		b = append(b, `"needs_more_information"`...)
	}
	return append(b, `]}`...)
}

// reasoning appends the reasons for the selected option.
func (w *writer) reasoning(b []byte, a *agent, best int, revised bool) []byte {
	b = append(append(b, "For "...), w.subject(a)...)
	b = hundredths(append(b, " the first option scores "...), best)
	b = append(b, ". "...)
	b = append(b, a.trade.grounds[w.rng.IntN(len(a.trade.grounds))]...)
	b = append(append(b, " Decided on "...), w.b.values[0]...)
	if len(w.b.values) > 1 {
		b = append(append(b, " and "...), w.b.values[1]...)
	}
	b = append(b, '.')
	if revised {
		b = append(b, " Reasoning revised after the fact."...)
	}
	return b
}

// escalation appends the escalation block (AAP section 5.6).
func (w *writer) escalation(b []byte, n int, a *agent, at time.Time) []byte {
	b = append(b, `,"escalation":{"evaluated":`...)
	b = boolean(b, w.b.evaluated)
	b = append(b, `,"triggers_checked":[`...)
	b = w.checks(b, a)
	b = boolean(append(b, `],"required":`...), w.b.required)
	if !w.b.required {
		b = append(b, `,"reason":"No trigger asks for the principal"`...)
		if w.b.cites {
			b = w.escalationID(b, n-1)
		}
		return append(b, '}')
	}
	b = append(b, `,"reason":"A trigger asks for the principal"`...)
	b = w.escalationID(b, n)
	b = append(append(b, `,"escalation_status":"`...), w.b.status...)
	b = append(b, '"')
	if w.b.status == schema.EscalationApproved || w.b.status == schema.EscalationDenied {
		b = w.response(b, a, at)
	}
	return append(b, '}')
}

// escalationID appends the id of the escalation of step n.
func (w *writer) escalationID(b []byte, n int) []byte {
	b = appendHex(append(b, `,"escalation_id":"esc-`...), mix(w.f.salt^uint64(n)))
	return append(b, '"')
}

// checks appends the agent's claim about each trigger of its card.
func (w *writer) checks(b []byte, a *agent) []byte {
	for i, condition := range w.conditions[a.trade] {
		matched, claimed := w.b.matched(i)
		if condition == nil || !claimed {
			continue
		}
		if b[len(b)-1] == '}' {
			b = append(b, ',')
		}
		b = append(append(b, `{"trigger":`...), condition...)
		b = boolean(append(b, `,"matched":`...), matched)
		if i == triggerCap && w.b.observed > 0 {
			b = cents(append(b, `,"value_observed":`...), w.b.observed)
		}
		b = append(b, '}')
	}
	return b
}

// answerDelay is how long before the trace the principal answered.
const answerDelay = 40 * time.Second

// response appends the principal's answer.
func (w *writer) response(b []byte, a *agent, at time.Time) []byte {
	b = append(append(b, `,"principal_response":{"decision":"`...), cmp.Or(w.b.decision, w.b.status)...)
	b = appendTime(append(b, `","timestamp":`...), at.Add(w.b.answered))
	if w.b.upTo > 0 {
		b = append(append(b, `,"conditions":["`...), a.trade.amount...)
		b = append(cents(append(b, " <= "...), w.b.upTo), `"]`...)
	}
	return append(b, '}')
}

// context appends the context block (AAP section 5.7).
func (w *writer) context(b []byte, n int, a *agent, s *step) []byte {
	b = append(b, `,"context":{"session_id":"`...)
	b = w.f.appendSessionID(b, s.session)
	b = number(b, `","conversation_turn":`, int64(w.b.turn))
	b = append(b, `,"prior_trace_ids":[`...)
	for back := min(2, int(s.turn)-1); back > 0; back-- {
		b = w.f.appendTraceID(append(b, '"'), uint64(n-back))
		b = append(b, '"')
		if back > 1 {
			b = append(b, ',')
		}
	}
	b = append(append(b, `],"environment":{"client":"`...), clients[s.session%int32(len(clients))]...)
	b = append(b, `","locale":"en-GB"},"metadata":{"model":"simulated-1"`...)
	b = number(b, `,"latency_ms":`, int64(120+w.rng.IntN(2400)))
	b = w.signs(b, a)
	if s.number > 0 {
		b = number(b, `,"sequence_number":`, int64(s.number))
	}
	if s.end {
		b = append(b, `,"session_end":true`...)
	}
	if w.b.acted() {
		b = w.execution(b, n, a)
	}
	return append(b, `}}`...)
}

var clients = [...]string{"web", "mobile", "api", "voice"}

// signs appends the members of metadata that triggers use.
func (w *writer) signs(b []byte, a *agent) []byte {
	if w.b.shadow > 0 {
		b = append(append(b, `,"`...), a.trade.amount...)
		b = cents(append(b, `":`...), w.b.shadow)
	}
	if w.b.holds[triggerDeny] {
		b = append(append(b, ','), a.trade.deny.metadata...)
	}
	if w.b.holds[triggerLog] {
		b = append(append(b, ','), a.trade.log.metadata...)
	}
	return b
}

// execution appends the execution block, a convention of Plumbline. The inputs of an approved
// action contain the approval, which redaction must hide.
func (w *writer) execution(b []byte, n int, a *agent) []byte {
	b = append(append(b, `,"execution":{"tool_name":"`...), a.trade.name...)
	b = append(append(append(b, '.'), w.b.act.name...), `","inputs":{"subject":"`...)
	b = append(append(b, w.subject(a)...), '"')
	if w.b.status == schema.EscalationApproved {
		b = appendHex(append(b, `,"approval_token":"`...), mix(^w.f.salt^uint64(n)))
		b = append(b, '"')
	}
	b = append(b, `},"outputs":{"status":"done","reference":"`...)
	b = appendHex(b, mix(w.f.salt+uint64(n)<<20))
	b = number(b, `","items":`, int64(1+w.rng.IntN(12)))
	b = number(b, `},"cost_cents":`, int64(w.rng.IntN(9)))
	return append(b, `,"error":""}`...)
}

func boolean(b []byte, x bool) []byte {
	if x {
		return append(b, "true"...)
	}
	return append(b, "false"...)
}
