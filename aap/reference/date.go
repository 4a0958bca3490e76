package reference

import (
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
)

// isoLayout is the form of JavaScript's toISOString.
const isoLayout = "2006-01-02T15:04:05.000Z"

// milliseconds is JavaScript's new Date(n).getTime(): milliseconds since 1970, NaN for an
// invalid date.
func (n value) milliseconds() float64 {
	switch n.v.(type) {
	case Undefined:
		return math.NaN()
	case nil, bool, float64:
		return clip(math.Trunc(n.number()))
	}
	return parseDate(n.string())
}

// clip returns NaN for a time outside the range of a JavaScript Date.
func clip(ms float64) float64 {
	if math.Abs(ms) > 8.64e15 {
		return math.NaN()
	}
	return ms
}

// parseDate is Date.parse of the reference's engine: the date-time format of ECMAScript, or
// else its older, lenient forms. A missing zone means UTC.
func parseDate(s string) float64 {
	p := dateParser{tokens: scanDate(s), half: none, hours: none, minutes: none}
	outcome := p.standard()
	if outcome == malformed || outcome == otherForm && !p.lenient() {
		return math.NaN()
	}
	year, month, day, dayOK := p.date(outcome == complete)
	clock, clockOK := p.timeOfDay()
	// The engine computes the seconds of an offset in 32 bits.
	offset := uint32(max(p.hours, 0)*60+max(p.minutes, 0)) * 60
	if !dayOK || !clockOK || offset > math.MaxInt32 {
		return math.NaN()
	}
	midnight := float64(time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC).Unix()) * 1000
	return clip(midnight + clock - float64(p.sign)*float64(offset)*1000)
}

// dateToken is a token of a date text.
type dateToken struct {
	kind   rune
	value  int // of a number: its first nine digits after leading zeros; the month; 12 for pm; hours east of UTC
	length int // in characters
}

// The kinds of tokens, in addition to the symbols : - + . ) which stand for themselves.
const (
	endOfDate  = 0
	number     = '0'
	space      = ' '
	monthName  = 'M'
	halfDay    = 'A' // am or pm
	zoneName   = 'Z'
	timeMark   = 'T' // between date and time
	otherWord  = 'w'
	ignored    = 'x' // such as a comma or (a comment)
	wordKinds  = "MAZTw"
	dateSymbol = ":-+.)"
)

// maxDigits is the number of significant digits that are read.
const maxDigits = 9

func (t dateToken) digits(length int) bool { return t.kind == number && t.length == length }
func (t dateToken) zulu() bool             { return t.kind == zoneName && t.length == 1 }
func (t dateToken) signed() bool           { return t.kind == '+' || t.kind == '-' }

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

// scanDate splits a text into tokens. Every character from A on belongs to a word, except white
// space.
func scanDate(s string) (tokens []dateToken) {
	for units := utf16.Encode([]rune(s)); len(units) > 0; {
		t := dateToken{kind: ignored, length: 1}
		switch first := rune(units[0]); {
		case isDigit(first):
			t = scanNumber(units)
		case strings.ContainsRune(dateSymbol, first):
			t.kind = first
		case isSpace(first):
			t.kind = space
		case first >= 'A':
			t = scanWord(units)
		case first == '(':
			t.length = comment(units)
		}
		tokens, units = append(tokens, t), units[t.length:]
	}
	return tokens
}

func scanNumber(units []uint16) dateToken {
	t := dateToken{kind: number}
	for significant := 0; t.length < len(units) && isDigit(rune(units[t.length])); t.length++ {
		digit := int(units[t.length] - '0')
		if (significant > 0 || digit != 0) && significant < maxDigits {
			t.value = t.value*10 + digit
			significant++
		}
	}
	return t
}

var (
	monthNames = strings.Fields("jan feb mar apr may jun jul aug sep oct nov dec")
	zoneHours  = map[string]int{
		"z": 0, "ut": 0, "utc": 0, "gmt": 0, "edt": -4, "est": -5, "cdt": -5, "cst": -6, "mdt": -6, "mst": -7, "pdt": -7, "pst": -8,
	}
)

// scanWord reads a word. Its first three letters give its meaning; only months may be longer.
func scanWord(units []uint16) dateToken {
	length := slices.IndexFunc(units, func(u uint16) bool { return u < 'A' || isSpace(rune(u)) })
	if length < 0 {
		length = len(units)
	}
	var b strings.Builder
	for _, unit := range units[:min(length, 3)] {
		b.WriteRune(rune(unit | 0x20)) // lower case, for letters
	}
	prefix := b.String()
	hours, isZone := zoneHours[prefix]
	switch month := slices.Index(monthNames, prefix); {
	case month >= 0:
		return dateToken{monthName, month + 1, length}
	case length > 3:
	case isZone:
		return dateToken{zoneName, hours, length}
	case prefix == "am":
		return dateToken{halfDay, 0, length}
	case prefix == "pm":
		return dateToken{halfDay, 12, length}
	case prefix == "t":
		return dateToken{timeMark, 0, length}
	}
	return dateToken{otherWord, 0, length}
}

// comment returns the length of a text in parentheses, up to the end if they are not closed.
func comment(units []uint16) int {
	depth := 0
	for i, unit := range units {
		switch unit {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			return i + 1
		}
	}
	return len(units)
}

// none is the value of a part of a date that the text lacks.
const none = -1

// dateParser reads the tokens of a date text.
type dateParser struct {
	tokens []dateToken
	day    []int // the numbers of the date, at most 3
	month  int   // 0: not named
	clock  []int // hour, minute, second and millisecond, at most 4
	half   int   // 0 for am, 12 for pm

	// The offset from UTC; without one, sign is 0.
	sign, hours, minutes int
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
		return dateToken{kind: endOfDate}
	}
	return p.tokens[0]
}

func (p *dateParser) next() dateToken {
	token := p.peek()
	p.tokens = p.tokens[min(1, len(p.tokens)):]
	return token
}

func (p *dateParser) skip(kind rune) bool {
	if p.peek().kind != kind {
		return false
	}
	p.next()
	return true
}

func (p *dateParser) addDay(n int) bool {
	if len(p.day) == 3 {
		return false
	}
	p.day = append(p.day, n)
	return true
}

func (p *dateParser) addClock(n int) bool {
	if len(p.clock) == 4 {
		return false
	}
	p.clock = append(p.clock, n)
	return true
}

func (p *dateParser) setSign(plus bool) {
	p.sign = -1
	if plus {
		p.sign = 1
	}
}

// standard reads [+-YY]YYYY[-MM[-DD]][THH:mm[:ss[.sss]][Z or an offset]]. It leaves the rest to
// lenient.
func (p *dateParser) standard() dateOutcome {
	switch {
	case p.peek().digits(4):
		p.addDay(p.next().value)
	case p.peek().signed() && len(p.tokens) > 1 && p.tokens[1].digits(6):
		year := p.tokens[1].value
		if p.peek().kind == '-' {
			if year == 0 { // there is no year -0: the engine drops the number
				p.tokens = slices.Concat(p.tokens[:1], p.tokens[2:])
				return otherForm
			}
			year = -year
		}
		p.tokens = p.tokens[2:]
		p.addDay(year)
	default:
		return otherForm
	}
	for _, last := range []int{12, 31} {
		if !p.skip('-') {
			break
		}
		if n := p.peek().value; !p.peek().digits(2) || n < 1 || n > last {
			return otherForm
		}
		p.addDay(p.next().value)
	}
	switch {
	case p.skip(timeMark):
		if !p.standardClock() || !p.standardZone() || p.peek().kind != endOfDate {
			return malformed
		}
	case p.peek().kind != endOfDate:
		return otherForm
	}
	return complete
}

func (p *dateParser) standardClock() bool {
	twoDigits := func(last int) bool {
		return p.peek().digits(2) && p.peek().value <= last && p.addClock(p.next().value)
	}
	if !twoDigits(24) || !p.skip(':') || !twoDigits(59) {
		return false
	}
	if p.skip(':') {
		if !twoDigits(59) {
			return false
		}
		if p.skip('.') {
			if p.peek().kind != number {
				return false
			}
			p.addClock(thousandths(p.next()))
		}
	}
	_, valid := p.timeOfDay()
	return valid
}

func (p *dateParser) standardZone() bool {
	switch {
	case p.peek().zulu():
		p.next()
		p.sign, p.hours, p.minutes = 1, 0, 0
		return true
	case !p.peek().signed():
		return true
	}
	p.setSign(p.next().kind == '+')
	if p.peek().digits(4) {
		n := p.next().value
		p.hours, p.minutes = n/100, n%100
		return p.hours < 24 && p.minutes < 60
	}
	if !p.peek().digits(2) || p.peek().value > 23 {
		return false
	}
	p.hours = p.next().value
	if !p.skip(':') || !p.peek().digits(2) || p.peek().value > 59 {
		return false
	}
	p.minutes = p.next().value
	return true
}

// thousandths reads the digits after a decimal point as milliseconds. As in the reference's
// engine, leading zeros of more than nine digits are lost.
func thousandths(t dateToken) int {
	return int(float64(t.value) * math.Pow10(3-min(t.length, maxDigits)))
}

// lenient reads the rest: numbers, times, words and zones in any order.
func (p *dateParser) lenient() bool {
	read := len(p.day) > 0 // a number has been read
	for len(p.tokens) > 0 {
		t := p.next()
		valid := true
		switch {
		case t.kind == number:
			read, valid = true, p.lenientNumber(t.value)
		case t.kind == halfDay && len(p.clock) > 0:
			p.half = t.value
		case t.kind == monthName:
			p.month = t.value
			p.skip('-')
		case t.kind == zoneName && read:
			p.setSign(t.value >= 0)
			p.hours, p.minutes = max(t.value, -t.value), 0
		case strings.ContainsRune(wordKinds, t.kind): // valid only before the first number, and separated from it
			valid = !read && p.peek().kind != number
		case t.signed() && (p.hours == 0 && p.minutes == 0 || len(p.clock) > 0):
			read, valid = true, p.lenientOffset(t.kind == '+')
		case t.signed(), t.kind == ')':
			valid = !read
		}
		if !valid {
			return false
		}
	}
	return true
}

func (p *dateParser) lenientNumber(n int) bool {
	timed := len(p.clock) > 0 && len(p.clock) < 4 && n < []int{0, 60, 60, 1000}[len(p.clock)] // n can be the next part of the time
	finish := func(n int) {                                                                   // adds the last number; missing ones are 0
		for p.addClock(n) {
			n = 0
		}
	}
	switch {
	case p.skip(':'):
		if p.skip(':') { // a second colon means minute 0
			return len(p.clock) == 0 && p.addClock(n) && p.addClock(0)
		}
		added := p.addClock(n)
		p.skip('.')
		return added
	case timed && p.skip('.'):
		p.addClock(n)
		if p.peek().kind != number {
			return false
		}
		finish(thousandths(p.next()))
		return true
	case p.hours != none && p.minutes == none && n < 60: // of an offset
		p.skip('.')
		p.minutes = n
		return true
	case timed:
		finish(n)
		after := p.peek()
		return after.kind == endOfDate || after.kind == space || after.zulu() || after.signed()
	}
	p.skip('.')
	added := p.addDay(n)
	p.skip('-')
	return added
}

// lenientOffset reads +h, +hh, +hhmm, or the hours of +hh:mm.
func (p *dateParser) lenientOffset(east bool) bool {
	p.setSign(east)
	var t dateToken
	if p.peek().kind == number {
		t = p.next()
	}
	switch {
	case p.peek().kind == ':':
		p.hours, p.minutes = t.value, none
	case t.length == 1 || t.length == 2:
		p.hours, p.minutes = t.value, 0
	case t.length == 3 || t.length == 4:
		p.hours, p.minutes = t.value/100, t.value%100
	default:
		return false
	}
	return true
}

// date orders the numbers of the date; missing ones are 1. standard means year, month, day.
// Otherwise a first number that cannot be a day is the year, years of two digits are in 1950 to
// 2049, and a missing year is 2001.
func (p *dateParser) date(standard bool) (year, month, day int, ok bool) {
	if len(p.day) == 0 {
		return 0, 0, 0, false
	}
	n := append(slices.Clone(p.day), 1, 1)
	first := n[0] >= 1 && n[0] <= 31 // can be a day
	switch {
	case p.month != 0 && !first:
		year, month, day = n[0], p.month, n[1]
	case p.month != 0:
		year, month, day = n[1], p.month, n[0]
	case standard, !first:
		year, month, day = n[0], n[1], n[2]
	default:
		month, day, year = n[0], n[1], n[2]
	}
	switch {
	case standard:
	case year >= 0 && year < 50:
		year += 2000
	case year >= 50 && year < 100:
		year += 1900
	}
	return year, month, day, month >= 1 && month <= 12 && day >= 1 && day <= 31
}

// timeOfDay returns the milliseconds since midnight; 24:00 is allowed.
func (p *dateParser) timeOfDay() (float64, bool) {
	n := append(slices.Clone(p.clock), 0, 0, 0, 0)
	hour, minute, second, ms := n[0], n[1], n[2], n[3]
	if p.half != none {
		if hour > 12 {
			return 0, false
		}
		hour = hour%12 + p.half
	}
	valid := hour < 24 && minute < 60 && second < 60 && ms < 1000 || hour == 24 && minute == 0 && second == 0 && ms == 0
	return float64(((hour*60+minute)*60+second)*1000 + ms), valid
}
