package drift

import (
	"crypto/sha256"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/aap/similarity"
)

// Idle is how long a session is silent, in the order of its series, until it counts as complete.
const Idle = 30 * time.Minute

// Bounds on what is kept while a baseline is learned. Sessions beyond the last place share it.
const (
	maxSessions = MaxSessions
	maxTexts    = 100 // of a kind, so that the sum of the sketches cannot overflow
)

// learning gathers the traces of a series until enough sessions are complete. It keeps each trace
// reduced to 16 bytes: what is usual is known only when all have come.
type learning struct {
	first    int // how many sessions' texts those of later sessions are compared with
	keys     []string
	declared uint64 // keys of declared values, a bit each
	full     bool   // some keys found no place
	actions  []action
	sessions []session
	shapes   []shape
	traces   []reduced
	texts    [kinds][2]texts // of the first sessions, and of the later ones
	benefit  facts           // hasBenefit where the card declares principal_benefit

	firstTexts [kinds]*textSum // of the first sessions' texts; nil if they changed since it was computed
}

// action is a pair of type and name.
type action struct {
	hash uint32
	typ  uint8
}

type session struct {
	id     string
	chain  [16]byte // hash of the traces' digests, in order
	last   int64    // order of the newest trace, in nanoseconds; 0 once it is done
	traces int
	done   bool
}

// complete marks a session as complete. It stays so, however old it is, and whatever comes of it.
func (s *session) complete() { s.done, s.last = true, 0 }

// texts is the sum of the sketches of the first texts.
type texts struct {
	sum   similarity.Sketch
	count int
}

// shape is what many traces have in common.
type shape struct {
	features uint64 // keys, a bit each
	facts    facts
	typ      uint8
	action   uint8 // index in actions; maxActions where it found no place
}

// reduced is one trace of a session.
type reduced struct {
	shape      uint16
	session    uint8
	figures    [figures]figure
	confidence float32
}

// add adds a trace to its session, and completes the sessions that are idle at its time.
func (l *learning) add(x *Sample) {
	at := orderOf(x)
	for i := range l.sessions {
		if at-l.sessions[i].last >= int64(Idle) {
			l.sessions[i].complete()
		}
	}
	n := l.session(x.Session)
	s := &l.sessions[n]
	sum := sha256.Sum256(append(s.chain[:], x.Digest[:]...))
	s.chain = [16]byte(sum[:16])
	s.traces++
	if x.SessionEnd {
		s.complete()
	}
	if !s.done {
		s.last = max(s.last, at)
	}

	d := decisionOf(x)
	r := reduced{session: uint8(n), figures: d.figures, confidence: float32(x.Confidence)}
	if cosine, known := l.text(x, d.facts.kind(), n); known {
		d.facts |= hasText
		r.figures[wordingFigure] = figureOf(cosine)
	}
	r.shape = l.shape(shape{l.features(x), d.facts, d.typ, l.action(x)})
	l.traces = append(l.traces, r)
	if x.DeclaresBenefit {
		l.benefit = hasBenefit
	}
}

// Learned returns the sessions of the baseline that is being formed, in the order of their first traces, with the order
// of the newest trace in nanoseconds; 0 where the session is complete.
func (s *State) Learned() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		if s.learning == nil {
			return
		}
		for i := range s.learning.sessions {
			if each := &s.learning.sessions[i]; !yield(each.id, each.last) {
				return
			}
		}
	}
}

func orderOf(x *Sample) int64 {
	if x.Order.IsZero() {
		return x.EventTime.UnixNano()
	}
	return x.Order.UnixNano()
}

// end completes a session, if the series has one of this id.
func (l *learning) end(id string) {
	id = boundedID(id)
	for i := range l.sessions {
		if l.sessions[i].id == id {
			l.sessions[i].complete()
		}
	}
}

// boundedID replaces a long id by its hash, so that the state stays small.
func boundedID(id string) string { return boundedKey("", id, 64) }

func (l *learning) session(id string) int {
	id = boundedID(id)
	for i := range l.sessions {
		if l.sessions[i].id == id {
			return i
		}
	}
	if len(l.sessions) == maxSessions {
		return maxSessions - 1
	}
	l.sessions = append(l.sessions, session{id: strings.Clone(id)}) // the sample's other texts can be freed
	return len(l.sessions) - 1
}

func (l *learning) features(x *Sample) (bits uint64) {
	for _, f := range x.Features {
		i := slices.Index(l.keys, f.Key)
		if i < 0 {
			if len(l.keys) == maxKeys {
				l.full = true
				continue
			}
			i = len(l.keys)
			l.keys = append(l.keys, strings.Clone(f.Key))
			if slices.Contains(x.Declared, f.Key) {
				l.declared |= 1 << i
			}
		}
		bits |= 1 << i
	}
	return bits
}

func (l *learning) action(x *Sample) uint8 {
	a := action{actionHash(x.Action, x.Name), typeOf(x)}
	i := slices.Index(l.actions, a)
	if i < 0 && len(l.actions) < maxActions {
		i = len(l.actions)
		l.actions = append(l.actions, a)
	}
	if i < 0 {
		i = maxActions
	}
	return uint8(i)
}

func (l *learning) shape(s shape) uint16 {
	i := slices.Index(l.shapes, s)
	if i < 0 {
		i = len(l.shapes)
		l.shapes = append(l.shapes, s)
	}
	return uint16(i)
}

// text adds a text. It returns the similarity of a later session's text to those of the first
// sessions: a text is never compared with its own session, which it resembles.
func (l *learning) text(x *Sample, k Kind, session int) (cosine float64, known bool) {
	later := session >= l.first
	into := &l.texts[k][0]
	if later {
		into = &l.texts[k][1]
	}
	if x.Reasoning == "" || !later && into.count == maxTexts {
		return 0, false
	}
	sketch := similarity.SketchOf(x.Reasoning)
	if later {
		if l.firstTexts[k] == nil {
			first := newTextSum(l.texts[k][0].sum[:])
			l.firstTexts[k] = &first
		}
		cosine, known = l.firstTexts[k].similarity(&sketch)
	}
	if into.count < maxTexts {
		into.sum.Add(&sketch)
		into.count++
		if !later {
			l.firstTexts[k] = nil
		}
	}
	return cosine, known
}

// complete returns how many sessions are complete.
func (l *learning) complete() (n int) {
	if l == nil {
		return 0
	}
	for i := range l.sessions {
		if l.sessions[i].done {
			n++
		}
	}
	return n
}

// ready reports whether the traces so far form the baseline: enough sessions are complete, or the
// traces are as many as are kept. Sessions that go on belong to it, too: of many sessions side by
// side the first that are complete are the short ones.
func (l *learning) ready(p Params) bool {
	return l.complete() >= p.Sessions && len(l.traces) >= p.LeastTraces || len(l.traces) >= p.MostTraces
}
