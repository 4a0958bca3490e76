package floor

import (
	"bytes"
	"unsafe"
)

// record is what the floor reads from one trace: the values as they stand, texts without their
// quotes. They share the memory of the trace. What a trace does not have is empty.
type record struct {
	traceID, agentID, cardID, timestamp    string
	actionType, actionName, actionCategory string
	selected, confidence                   string
	evaluated, required                    string
	escalationID, escalationStatus         string
	sessionID, turn, sessionEnd            string
	toolName, costCents                    string
}

// scan reads a trace, which must be valid JSON.
func (r *record) scan(trace []byte) {
	*r = record{}
	s := scanner{text: trace}
	for s.enter(); s.member(); {
		switch s.name {
		case "trace_id":
			r.traceID = s.value()
		case "agent_id":
			r.agentID = s.value()
		case "card_id":
			r.cardID = s.value()
		case "timestamp":
			r.timestamp = s.value()
		case "action":
			r.action(&s)
		case "decision":
			r.decision(&s)
		case "escalation":
			r.escalation(&s)
		case "context":
			r.context(&s)
		default:
			s.value()
		}
	}
}

func (r *record) action(s *scanner) {
	for s.enter(); s.member(); {
		switch s.name {
		case "type":
			r.actionType = s.value()
		case "name":
			r.actionName = s.value()
		case "category":
			r.actionCategory = s.value()
		default:
			s.value()
		}
	}
}

func (r *record) decision(s *scanner) {
	for s.enter(); s.member(); {
		switch s.name {
		case "selected":
			r.selected = s.value()
		case "confidence":
			r.confidence = s.value()
		default:
			s.value()
		}
	}
}

func (r *record) escalation(s *scanner) {
	for s.enter(); s.member(); {
		switch s.name {
		case "evaluated":
			r.evaluated = s.value()
		case "required":
			r.required = s.value()
		case "escalation_id":
			r.escalationID = s.value()
		case "escalation_status":
			r.escalationStatus = s.value()
		default:
			s.value()
		}
	}
}

func (r *record) context(s *scanner) {
	for s.enter(); s.member(); {
		switch s.name {
		case "session_id":
			r.sessionID = s.value()
		case "conversation_turn":
			r.turn = s.value()
		case "metadata":
			for s.enter(); s.member(); {
				switch s.name {
				case "session_end":
					r.sessionEnd = s.value()
				case "execution":
					r.execution(s)
				default:
					s.value()
				}
			}
		default:
			s.value()
		}
	}
}

func (r *record) execution(s *scanner) {
	for s.enter(); s.member(); {
		switch s.name {
		case "tool_name":
			r.toolName = s.value()
		case "cost_cents":
			r.costCents = s.value()
		default:
			s.value()
		}
	}
}

// scanner walks through the members of the objects of a JSON text.
type scanner struct {
	text []byte
	at   int
	name string // of the member whose value is next
}

// enter goes behind the opening bracket of the next object.
func (s *scanner) enter() { s.at += bytes.IndexByte(s.text[s.at:], '{') + 1 }

// member reads the name of the next member. It reports false at the end of the object, and goes
// behind it.
func (s *scanner) member() bool {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case '"':
			s.name = s.value()
			s.at += bytes.IndexByte(s.text[s.at:], ':') + 1
			return true
		case '}':
			s.at++
			return false
		}
		s.at++ // a comma or a blank
	}
	return false
}

// value returns the next value and goes behind it. A text is returned without its quotes.
func (s *scanner) value() string {
	for s.at < len(s.text) && s.text[s.at] <= ' ' {
		s.at++
	}
	from := s.at
	for depth := 0; s.at < len(s.text); {
		switch c := s.text[s.at]; c {
		case '"':
			s.quoted()
			if depth == 0 {
				return share(s.text[from+1 : s.at-1])
			}
			continue
		case '{', '[':
			depth++
		case '}', ']', ',':
			if depth == 0 { // the end of a number or a word
				return share(bytes.TrimRight(s.text[from:s.at], " \t\r\n"))
			}
			if c != ',' {
				depth--
			}
			if depth == 0 {
				s.at++
				return share(s.text[from:s.at])
			}
		}
		s.at++
	}
	return share(s.text[from:])
}

// quoted goes behind the text that begins here.
func (s *scanner) quoted() {
	for s.at++; s.at < len(s.text); s.at++ {
		end := bytes.IndexByte(s.text[s.at:], '"')
		if end < 0 {
			break
		}
		s.at += end
		escapes := 0
		for s.text[s.at-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			s.at++
			return
		}
	}
	s.at = len(s.text)
}

// share returns bytes as a text without a copy. Nothing writes to a trace.
func share(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
