package reference

import "math"

// dateParser reads the tokens of a date text.
type dateParser struct {
	tokens []dateToken
	day    dayParts
	clock  clockParts
	zone   zoneParts
	read   bool // a number has been read
}

// dateOutcome is the result of reading the standard format.
type dateOutcome int

const (
	complete  dateOutcome = iota
	otherForm             // the rest has a lenient form
	malformed             // invalid in every form
)

func (p *dateParser) peek() dateToken {
	if len(p.tokens) == 0 {
		return dateToken{}
	}
	return p.tokens[0]
}

func (p *dateParser) next() dateToken {
	token := p.peek()
	if len(p.tokens) > 0 {
		p.tokens = p.tokens[1:]
	}
	return token
}

func (p *dateParser) skip(symbol rune) bool {
	if !p.peek().is(symbol) {
		return false
	}
	p.next()
	return true
}

// standard reads [+-YY]YYYY[-MM[-DD]][THH:mm[:ss[.sss]][Z or an offset]]. It leaves the rest to
// lenient.
func (p *dateParser) standard() dateOutcome {
	if !p.standardYear() || !p.standardMonthAndDay() {
		return otherForm
	}
	if p.peek().keyword(timeWord) {
		p.next()
		if !p.standardClock() || !p.standardZone() || p.peek().kind != endOfDate {
			return malformed
		}
		return complete
	}
	if p.peek().kind != endOfDate {
		return otherForm
	}
	return complete
}

func (p *dateParser) standardYear() bool {
	if p.peek().digits(4) {
		return p.day.add(p.next().number)
	}
	if !p.peek().sign() || len(p.tokens) < 2 || !p.tokens[1].digits(6) {
		return false
	}
	negative := p.peek().is('-')
	year := p.tokens[1].number
	if negative && year == 0 { // there is no year -0: the engine drops the number
		p.tokens = append(p.tokens[:1:1], p.tokens[2:]...)
		return false
	}
	if negative {
		year = -year
	}
	p.tokens = p.tokens[2:]
	return p.day.add(year)
}

func (p *dateParser) standardMonthAndDay() bool {
	for _, last := range []int{12, 31} {
		if !p.skip('-') {
			return true
		}
		if n := p.peek().number; !p.peek().digits(2) || n < 1 || n > last {
			return false
		}
		p.day.add(p.next().number)
	}
	return true
}

func (p *dateParser) standardClock() bool {
	if !p.twoDigits(24) || !p.skip(':') || !p.twoDigits(59) {
		return false
	}
	if p.skip(':') {
		if !p.twoDigits(59) {
			return false
		}
		if p.skip('.') {
			if p.peek().kind != numberToken {
				return false
			}
			p.clock.add(thousandths(p.next()))
		}
	}
	_, valid := p.clock.milliseconds()
	return valid
}

// twoDigits reads a number of the time of day.
func (p *dateParser) twoDigits(last int) bool {
	return p.peek().digits(2) && p.peek().number <= last && p.clock.add(p.next().number)
}

func (p *dateParser) standardZone() bool {
	if p.peek().zulu() {
		p.next()
		p.zone.set(0)
		return true
	}
	if !p.peek().sign() {
		return true
	}
	p.zone.setSign(p.next().is('+'))
	if p.peek().digits(4) {
		n := p.next().number
		p.zone.setHours(n / 100)
		p.zone.setMinutes(n % 100)
		return n/100 < 24 && n%100 < 60
	}
	if !p.peek().digits(2) || p.peek().number > 23 {
		return false
	}
	p.zone.setHours(p.next().number)
	if !p.skip(':') || !p.peek().digits(2) || p.peek().number > 59 {
		return false
	}
	p.zone.setMinutes(p.next().number)
	return true
}

// thousandths reads the digits after a decimal point as milliseconds. As in the reference's
// engine, leading zeros of more than nine digits are lost.
func thousandths(t dateToken) int {
	length := min(t.length, maxDigits)
	return int(float64(t.number) * math.Pow10(3-length))
}

// lenient reads the rest: numbers, times, words and zones in any order.
func (p *dateParser) lenient() bool {
	p.read = len(p.day.numbers) > 0
	for len(p.tokens) > 0 {
		if !p.lenientToken(p.next()) {
			return false
		}
	}
	return true
}

func (p *dateParser) lenientToken(t dateToken) bool {
	switch {
	case t.kind == numberToken:
		p.read = true
		return p.lenientNumber(t.number)
	case t.kind == wordToken:
		return p.lenientWord(t)
	case t.sign() && (p.zone.utc() || len(p.clock.numbers) > 0):
		p.read = true
		return p.lenientOffset(t.is('+'))
	case t.sign(), t.is(')'):
		return !p.read
	}
	return true
}

func (p *dateParser) lenientNumber(n int) bool {
	switch {
	case p.skip(':'):
		return p.beforeColon(n)
	case p.peek().is('.') && p.clock.expects(n):
		p.next()
		return p.beforePoint(n)
	case p.zone.expects(n):
		p.skip('.')
		p.zone.setMinutes(n)
		return true
	case p.clock.expects(n):
		p.skip('.')
		p.clock.finish(n)
		peek := p.peek()
		return peek.kind == endOfDate || peek.kind == spaceToken || peek.zulu() || peek.sign()
	}
	p.skip('.')
	added := p.day.add(n)
	p.skip('-')
	return added
}

// beforeColon adds a number to the time of day; a second colon means minute 0.
func (p *dateParser) beforeColon(n int) bool {
	if p.skip(':') {
		return len(p.clock.numbers) == 0 && p.clock.add(n) && p.clock.add(0)
	}
	added := p.clock.add(n)
	p.skip('.')
	return added
}

// beforePoint adds the seconds and the fraction after them.
func (p *dateParser) beforePoint(n int) bool {
	p.clock.add(n)
	if p.peek().kind != numberToken {
		return false
	}
	p.clock.finish(thousandths(p.next()))
	return true
}

func (p *dateParser) lenientWord(t dateToken) bool {
	switch {
	case t.word == halfDayWord && len(p.clock.numbers) > 0:
		p.clock.half, p.clock.halved = t.value, true
	case t.word == monthWord:
		p.day.month = t.value
		p.skip('-')
	case t.word == zoneWord && p.read:
		p.zone.set(t.value)
	default: // unknown text is valid only before the first number, and separated from it
		return !p.read && p.peek().kind != numberToken
	}
	return true
}

// lenientOffset reads +h, +hh, +hhmm, or the hours of +hh:mm.
func (p *dateParser) lenientOffset(east bool) bool {
	p.zone.setSign(east)
	var t dateToken
	if p.peek().kind == numberToken {
		t = p.next()
	}
	switch {
	case p.peek().is(':'):
		p.zone.setHours(t.number)
		p.zone.minsKnown = false
	case t.length == 1 || t.length == 2:
		p.zone.setHours(t.number)
		p.zone.setMinutes(0)
	case t.length == 3 || t.length == 4:
		p.zone.setHours(t.number / 100)
		p.zone.setMinutes(t.number % 100)
	default:
		return false
	}
	return true
}
