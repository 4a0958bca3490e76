package drift

import (
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// codeLearning codes a series that learns its baseline. This is the largest part of a state, and a million agents
// may learn at a time, so all but ids, hashes and sums of sketches is coded by an arithmetic coder, each number as what
// it is.
func codeLearning(c *codec, l *learning) {
	if c.version < version7 {
		readLearning(c, l)
		return
	}
	whole(c, &l.first)
	c.flag(&l.full)
	whole(c, &l.benefit)
	size(c, &l.sessions, maxSessions)
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
	a.sessions(l)
	a.end()
	codeIDs(c, l.sessions)
	like := &l.texts[0][0]
	for k := range l.texts {
		for i := range l.texts[k] {
			codeTexts(c, &l.texts[k][i], like)
			like = &l.texts[k][0]
		}
	}
}

// codeIDs codes the ids and the chains of the sessions. The ids of an agent are all UUIDs, or none is.
func codeIDs(c *codec, sessions []session) {
	others := slices.ContainsFunc(sessions, func(s session) bool { _, is := schema.ParseUUID(s.id); return !is })
	c.flag(&others)
	for i := range sessions {
		s := &sessions[i]
		if others {
			c.id(&s.id)
		} else {
			c.uuid(&s.id)
		}
		c.bytes(s.chain[:])
	}
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

// sessions codes what is known of the sessions but their ids and chains. Of those that go on, when each had its newest
// trace is coded by how long that was before the newest one, in microseconds where all are whole ones.
func (a *arithmetic) sessions(l *learning) {
	newest, longest, unit, exact := int64(0), uint64(0), int64(1), false
	for i := range l.sessions {
		newest = max(newest, l.sessions[i].last)
	}
	for i := range l.sessions {
		if s := &l.sessions[i]; !s.done {
			longest = max(longest, uint64(newest-s.last))
			exact = exact || s.last%int64(time.Microsecond) != 0
		}
	}
	var isExact, isDone chance
	if unit = int64(time.Microsecond); a.flag(&isExact, exact) {
		unit = 1
	}
	newest = int64(a.number(uint64(newest/unit), 63)) * unit
	width := int(a.raw(uint32(bits.Len64(longest/uint64(unit))), 6))
	for i := range l.sessions {
		s := &l.sessions[i]
		if s.done = a.flag(&isDone, s.done); !s.done { // a session that is complete stays so, however old it is
			s.last = newest - int64(a.number(uint64((newest-s.last)/unit), width))*unit
		}
	}
}

// number codes the lowest bits of a number, each of which is as likely to be zero as one.
func (a *arithmetic) number(number uint64, size int) (coded uint64) {
	for size > 0 {
		part := min(size, 16)
		size -= part
		coded = coded<<part | uint64(a.raw(uint32(number>>size&(1<<part-1)), part))
	}
	return coded
}

// shapes codes the actions and the shapes: of these the features and facts each by its own chance.
func (a *arithmetic) shapes(l *learning) {
	for i := range l.actions {
		l.actions[i].typ = uint8(a.raw(uint32(l.actions[i].typ), 3))
	}
	var features [maxKeys][3]chance // by those of the shape before with the same action: not known, not set, set
	var fact [16][3]chance
	var action [64]chance
	var typ [maxActions + 1][8]chance // by the action: it is the same for all but those that found no place
	var before [maxActions + 1]*shape
	for i := range l.shapes {
		s := &l.shapes[i]
		if s.action = uint8(a.tree(action[:], uint32(s.action))); s.action > maxActions {
			a.fail("an action in place %d", s.action)
			return
		}
		known, like := uint64(0), shape{}
		if before[s.action] != nil {
			known, like = 1, *before[s.action]
		}
		before[s.action] = s
		var set uint64
		for k := range l.keys {
			set |= uint64(a.bit(&features[k][known+known*(like.features>>k&1)], uint32(s.features>>k&1))) << k
		}
		s.features = set
		var is facts
		for k := range fact {
			is |= facts(a.bit(&fact[k][known+known*uint64(like.facts>>k&1)], uint32(s.facts>>k&1))) << k
		}
		s.facts = is
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

// traces codes the traces: of which sessions and shapes they are, then their figures.
func (a *arithmetic) traces(l *learning) {
	var isNew, same chance // the first trace of the next shape; session as that of the trace before
	var rank [maxSessions]chance
	shape, shapes := make([]chance, 1<<bits.Len(uint(max(1, len(l.shapes))-1))), 0 // so far
	var newest [maxSessions]uint8                                                  // sessions, the one with the newest trace first
	for i := range newest {
		newest[i] = uint8(i)
	}
	for i := range l.traces {
		r, at := &l.traces[i], 0
		if !a.flag(&same, r.session == newest[0]) {
			at = int(a.tree(rank[:], uint32(slices.Index(newest[:], r.session))))
		}
		r.session = newest[at]
		copy(newest[1:at+1], newest[:at])
		newest[0] = r.session
		if shapes < len(l.shapes) && (shapes == 0 || a.flag(&isNew, int(r.shape) == shapes)) {
			r.shape = uint16(shapes)
			shapes++
		} else {
			r.shape = uint16(a.tree(shape, uint32(r.shape)))
		}
		if int(r.shape) >= len(l.shapes) || int(r.session) >= len(l.sessions) {
			a.fail("trace %d has no shape or no session", i)
			return
		}
	}
	if a.reading {
		for i := range l.traces {
			l.sessions[l.traces[i].session].traces++
		}
	}
	a.figures(l)
}

// figures codes the figures by columns: most of a trace is as in many others.
func (a *arithmetic) figures(l *learning) {
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

// codeTexts codes a sum of sketches by its difference from another one: an agent's texts resemble each other. The sums
// are most of a learning state, and their bits are all as likely: no arithmetic coder codes them in much less.
func codeTexts(c *codec, t, like *texts) {
	if whole(c, &t.count); t.count == 0 {
		return
	}
	part := uint16(0) // of like, times 256
	if t != like {
		if !c.reading {
			part = unsigned(likeness(t, like))
		}
		whole(c, &part)
	}
	var numbers [len(t.sum)]uint16 // small differences of either sign are small numbers
	expected := func(i int) int16 { return int16(int(like.sum[i]) * int(signed(part)) >> 8) }
	if !c.reading {
		for i := range numbers {
			numbers[i] = unsigned(t.sum[i] - expected(i))
		}
	}
	r := bitRun{codec: c}
	r.rice(numbers[:])
	for i, n := range numbers {
		t.sum[i] = expected(i) + signed(n)
	}
}

// likeness returns by what part of another sum t is expected best, times 256.
func likeness(t, like *texts) int16 {
	product, square := t.sum.Dot(&like.sum), like.sum.Dot(&like.sum)
	if square == 0 {
		return 0
	}
	return int16(max(math.MinInt16, min(math.MaxInt16, product*256/square)))
}
