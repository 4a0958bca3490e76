package fleet

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
	"unicode/utf8"

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
	f          *Fleet
	chunk      []byte // its unused rest
	source     *rand.PCG
	rng        *rand.Rand
	conditions map[*archetype][triggerCount][]byte // as JSON strings; nil: no such trigger

	b       behaviour // of the trace being written
	session int       // of the trace being written
}

func newWriter(f *Fleet) *writer {
	w := &writer{f: f, source: rand.NewPCG(0, 0), conditions: map[*archetype][triggerCount][]byte{}}
	w.rng = rand.New(w.source)
	for _, t := range trades {
		var quoted [triggerCount][]byte
		for i, trigger := range t.triggers() {
			if trigger.condition != "" {
				quoted[i] = quote(trigger.condition)
			}
		}
		w.conditions[t] = quoted
	}
	return w
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
	if key := w.f.agentOf(int(l.step)).key; key != nil {
		raw = w.signed(raw, key)
	}
	if l.kind == broken {
		return spoils[l.spoil].apply(raw)
	}
	return raw
}

// signed returns raw with a signature by the agent's key, or by another key if the trace is to
// be forged.
func (w *writer) signed(raw []byte, key ed25519.PrivateKey) []byte {
	if w.b.forged {
		key = signingKey(^w.f.salt, 0)
	}
	signed, err := signature.Signed(raw, keyID, key)
	if err != nil {
		panic(fmt.Sprintf("fleet: sign a trace: %v", err)) // the writer did not write a JSON object
	}
	return signed
}

// apply returns a broken copy of raw.
func (s spoil) apply(raw []byte) []byte {
	if s.new == "" {
		return raw[:bytes.Index(raw, []byte(s.old))+len(s.old)]
	}
	return bytes.Replace(raw, []byte(s.old), []byte(s.new), 1)
}

// trace appends the trace of step n under the given id.
func (w *writer) trace(b []byte, n int, id uint64, revised bool) []byte {
	w.f.seed(w.source, n)
	s := &w.f.steps[n]
	a := w.f.agentOf(n)
	w.session = int(s.session)
	w.f.behave(w.rng, &w.b, a, s)
	at := w.f.eventTime(s)

	b = w.f.appendTraceID(append(b, `{"trace_id":"`...), id)
	b = append(append(b, `","agent_id":"`...), a.id...)
	b = append(append(b, `","card_id":"`...), w.b.card...)
	b = appendTime(append(b, `","timestamp":`...), at)
	b = w.action(b, n, a)
	b = w.decision(b, a, revised)
	b = w.escalation(b, n, a, at)
	b = w.context(b, n, a, s)
	return append(b, '}')
}

func appendTime(b []byte, at time.Time) []byte {
	return append(at.AppendFormat(append(b, '"'), "2006-01-02T15:04:05.000000Z"), '"')
}

// hundredths appends x/100 for x in 0..99.
func hundredths(b []byte, x int) []byte {
	return append(b, '0', '.', byte('0'+x/10), byte('0'+x%10))
}

// number appends a member's name and an integer.
func number(b []byte, name string, x int64) []byte {
	return strconv.AppendInt(append(b, name...), x, 10)
}

// quote returns s as a JSON string.
func quote(s string) []byte {
	b := []byte{'"'}
	for _, r := range s {
		switch r {
		case '"', '\\':
			b = append(b, '\\', byte(r))
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
