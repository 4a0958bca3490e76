package drift

import (
	"math"
	"math/bits"
	"slices"
	"strings"
)

// codeLearning codes a series that learns its baseline. This is the largest part of a state, and a million agents
// may learn at a time, so all but hashes and ids is coded by an arithmetic coder, each number as what it is.
func codeLearning(c *codec, l *learning) {
	if c.version < version7 {
		readLearning(c, l)
		return
	}
	whole(c, &l.first)
	c.flag(&l.full)
	whole(c, &l.benefit)
	before := int64(0)
	list(c, &l.sessions, maxSessions, func(c *codec, s *session) { before = codeSession(c, s, before) })
	size(c, &l.keys, maxKeys)
	size(c, &l.actions, maxActions)
	size(c, &l.shapes, maxMostTraces)
	size(c, &l.traces, maxMostTraces)
	if c.err != nil {
		return
	}
	a := c.arithmetic()
	a.keys(l)
	a.shapes(l)
	a.traces(l)
	like := &l.texts[0][0]
	for k := range l.texts {
		for i := range l.texts[k] {
			a.texts(&l.texts[k][i], like)
			like = &l.texts[k][0]
		}
	}
	a.end()
}

// size codes the length of a list.
func size[T any](c *codec, v *[]T, most int) {
	n := len(*v)
	if whole(c, &n); n > most {
		c.fail("a list of %d, want at most %d", n, most)
	} else if c.reading && n > 0 {
		*v = make([]T, n)
	}
}

// codeSession codes a session. before is when the session before it had its newest trace that counts; codeSession
// returns that of s, or before.
func codeSession(c *codec, s *session, before int64) int64 {
	c.id(&s.id)
	c.bytes(s.chain[:])
	traces := s.traces << 1
	if s.done {
		traces |= 1
	}
	whole(c, &traces)
	s.traces, s.done = traces>>1, traces&1 == 1
	if s.done { // it stays so, however old it is
		return before
	}
	later := s.last - before
	since := uint64(later<<1) ^ uint64(later>>63)
	whole(c, &since)
	s.last = before + (int64(since>>1) ^ -int64(since&1))
	return s.last
}

// words are what the keys of AAP section 8.3 begin with, or are.
var words = [16]string{
	"", "action:", "action_name:", "value:", "category:", "confidence",
	"action:recommend", "action:execute", "action:escalate", "action:deny",
	"category:bounded", "category:escalation_trigger", "category:forbidden",
	"escalation:evaluated", "escalation:required", "escalation:not_required",
}

// letters are those that keys have most. Behind them come the mark of another byte, and that of the end.
const (
	letters     = "abcdefghijklmnopqrstuvwxyz_-.:"
	otherLetter = len(letters)
	endOfKey    = otherLetter + 1
)

func (a *arithmetic) keys(l *learning) {
	var word [len(words)]chance
	var letter [endOfKey + 1][endOfKey + 1]chance // by the one before
	var isDeclared chance
	for i := range l.keys {
		key := l.keys[i]
		longest := 0
		for w := range words {
			if len(words[w]) > len(words[longest]) && strings.HasPrefix(key, words[w]) {
				longest = w
			}
		}
		longest = int(a.tree(word[:], uint32(longest)))
		text, before := []byte(words[longest]), endOfKey
		for at := len(text); ; at++ {
			next, mark := byte(0), endOfKey
			if at < len(key) {
				if next, mark = key[at], strings.IndexByte(letters, key[at]); mark < 0 {
					mark = otherLetter
				}
			}
			mark = int(a.tree(letter[before][:], uint32(mark)))
			before = mark
			if mark == endOfKey || a.c.err != nil {
				break
			}
			if mark == otherLetter {
				next = byte(a.raw(uint32(next), 8))
			} else {
				next = letters[mark]
			}
			text = append(text, next)
		}
		if a.reading {
			l.keys[i] = string(text)
		}
		if a.flag(&isDeclared, l.declared>>i&1 == 1) {
			l.declared |= 1 << i
		}
	}
}

// shapes codes the actions and the shapes: of these the features and facts each by its own chance.
func (a *arithmetic) shapes(l *learning) {
	for i := range l.actions {
		l.actions[i].typ = uint8(a.raw(uint32(l.actions[i].typ), 3))
	}
	var features [maxKeys]chance
	var fact [16]chance
	var action [64]chance
	var typ [maxActions + 1][8]chance // by the action: it is the same for all but those that found no place
	for i := range l.shapes {
		s := &l.shapes[i]
		var set uint64
		for k := range l.keys {
			set |= uint64(a.bit(&features[k], uint32(s.features>>k&1))) << k
		}
		s.features = set
		var is facts
		for k := range fact {
			is |= facts(a.bit(&fact[k], uint32(s.facts>>k&1))) << k
		}
		s.facts = is
		s.action = uint8(a.tree(action[:], uint32(s.action)))
		if s.action > maxActions {
			a.fail("an action in place %d", s.action)
			return
		}
		s.typ = uint8(a.tree(typ[s.action][:], uint32(s.typ)))
	}
	var isNamed chance
	for i := range l.actions {
		hash, named := &l.actions[i].hash, l.named(uint8(i))
		if a.flag(&isNamed, *hash == named) {
			*hash = named
			continue
		}
		high := a.raw(*hash>>16, 16)
		*hash = high<<16 | a.raw(*hash&(1<<16-1), 16)
	}
}

// named returns the hash of an action as the keys of its first shape say it: nearly always it is so.
func (l *learning) named(action uint8) uint32 {
	i := slices.IndexFunc(l.shapes, func(s shape) bool { return s.action == action })
	if i < 0 {
		return 0
	}
	typ, name := "", ""
	for k, key := range l.keys {
		if l.shapes[i].features>>k&1 == 0 {
			continue
		}
		if text, found := strings.CutPrefix(key, typePrefix); found {
			typ = text
		}
		if text, found := strings.CutPrefix(key, namePrefix); found {
			name = text
		}
	}
	return actionHash(typ, name)
}

// traces codes the traces by columns: most of a trace is as in many others.
func (a *arithmetic) traces(l *learning) {
	var session [maxSessions]chance
	shape := make([]chance, 1<<bits.Len(uint(max(1, len(l.shapes))-1)))
	var same chance // session as that of the trace before
	before := uint8(0)
	for i := range l.traces {
		r := &l.traces[i]
		if a.flag(&same, r.session == before) {
			r.session = before
		} else {
			r.session = uint8(a.tree(session[:], uint32(r.session)))
		}
		before = r.session
		if r.shape = uint16(a.tree(shape, uint32(r.shape))); int(r.shape) >= len(l.shapes) || int(r.session) >= len(l.sessions) {
			a.fail("trace %d has no shape or no session", i)
			return
		}
	}
	for _, i := range [...]int{lengthFigure, costFigure, benefitFigure, wordingFigure} {
		var high [512]chance
		column(a, len(l.traces), func(n int) *figure {
			if r := &l.traces[n]; i != wordingFigure || l.shapes[r.shape].facts.has(hasText) { // the others have none
				return &r.figures[i]
			}
			return nil
		}, func(f figure) figure { return figure(a.tree(high[:], uint32(f>>7))<<7 | a.raw(uint32(f&(1<<7-1)), 7)) })
	}
	var short chance
	column(a, len(l.traces), func(n int) *float32 { return &l.traces[n].confidence }, func(v float32) float32 { return a.share(&short, v) })
	for i := range l.traces {
		r := &l.traces[i]
		r.figures[confidenceFigure] = figureOf(float64(r.confidence))
	}
}

// share codes a number of which most are from 0 to 1 and have at most four decimals.
func (a *arithmetic) share(short *chance, v float32) float32 {
	const unit, size = 10_000, 14
	var n uint32
	if v >= 0 && v <= 1 {
		n = uint32(math.Round(float64(v) * unit))
	}
	bits := math.Float32bits(v)
	if a.flag(short, math.Float32bits(float32(float64(n)/unit)) == bits) {
		return float32(float64(a.raw(n, size)) / unit)
	}
	high := a.raw(bits>>16, 16)
	return math.Float32frombits(high<<16 | a.raw(bits&(1<<16-1), 16))
}

// column codes a value of each of n elements, except of those where at returns nil: a value that came before as
// its place among the different ones, and another one by each.
func column[T comparable](a *arithmetic, n int, at func(i int) *T, each func(v T) T) {
	var places [maxMostTraces]uint16
	values := make([]T, 0, n)
	if !a.reading {
		for i := range n {
			v := at(i)
			if v == nil {
				continue
			}
			place := slices.Index(values, *v)
			if place < 0 {
				place = len(values)
				values = append(values, *v)
			}
			places[i] = uint16(place)
		}
	}
	different := len(values)
	values = values[:0]
	if different = int(a.raw(uint32(different), 10)); different > n {
		a.fail("%d different values of %d", different, n)
		return
	}
	width := bits.Len(uint(max(1, different) - 1))
	known := make([]chance, 1<<width)
	var isNew chance
	for i := range n {
		v := at(i)
		if v == nil {
			continue
		}
		isNext := int(places[i]) == len(values)
		if len(values) < different && (len(values) == 0 || a.flag(&isNew, isNext)) {
			*v = each(*v)
			values = append(values, *v)
			continue
		}
		place := int(a.tree(known, uint32(places[i])))
		if place >= len(values) {
			a.fail("value %d of %d", place, len(values))
			return
		}
		*v = values[place]
	}
}

// texts codes a sum of sketches by its difference from another one: an agent's texts resemble each other.
func (a *arithmetic) texts(t, like *texts) {
	if t.count = int(a.raw(uint32(t.count), 7)); t.count == 0 {
		return
	}
	part := 0 // of like, times 256
	if t != like {
		if !a.reading {
			part = likeness(t, like)
		}
		part = int(int16(a.raw(uint32(uint16(part)), 16)))
	}
	var numbers [len(t.sum)]uint16 // small differences of either sign are small numbers
	expected := func(i int) int16 { return int16(int(like.sum[i]) * part >> 8) }
	if !a.reading {
		for i := range numbers {
			numbers[i] = unsigned(t.sum[i] - expected(i))
		}
	}
	a.rice(numbers[:])
	for i, n := range numbers {
		t.sum[i] = expected(i) + signed(n)
	}
}

// likeness returns by what part of another sum t is expected best, times 256.
func likeness(t, like *texts) int {
	product, square := t.sum.Dot(&like.sum), like.sum.Dot(&like.sum)
	if square == 0 {
		return 0
	}
	return int(max(math.MinInt16, min(math.MaxInt16, product*256/square)))
}
