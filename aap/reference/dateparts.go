package reference

import "math"

// dayParts collects the numbers of a date, and the month if it is named.
type dayParts struct {
	numbers []int
	month   int
}

func (d *dayParts) add(n int) bool {
	if len(d.numbers) == 3 {
		return false
	}
	d.numbers = append(d.numbers, n)
	return true
}

// date orders the numbers; missing ones are 1. standard means year, month, day. Otherwise a
// first number that cannot be a day is the year, years of two digits are in 1950 to 2049, and a
// missing year is 2001.
func (d *dayParts) date(standard bool) (year, month, day int, ok bool) {
	if len(d.numbers) == 0 {
		return 0, 0, 0, false
	}
	n := append(append([]int(nil), d.numbers...), 1, 1)
	first := n[0] >= 1 && n[0] <= 31 // can be a day
	switch {
	case d.month != 0 && !first:
		year, month, day = n[0], d.month, n[1]
	case d.month != 0:
		year, month, day = n[1], d.month, n[0]
	case standard, !first:
		year, month, day = n[0], n[1], n[2]
	default:
		month, day, year = n[0], n[1], n[2]
	}
	if !standard {
		year = century(year)
	}
	return year, month, day, month >= 1 && month <= 12 && day >= 1 && day <= 31
}

func century(year int) int {
	switch {
	case year >= 0 && year < 50:
		return year + 2000
	case year >= 50 && year < 100:
		return year + 1900
	}
	return year
}

// clockParts collects hour, minute, second and millisecond.
type clockParts struct {
	numbers []int
	half    int // 0 for am, 12 for pm, if given
	halved  bool
}

func (c *clockParts) add(n int) bool {
	if len(c.numbers) == 4 {
		return false
	}
	c.numbers = append(c.numbers, n)
	return true
}

// finish adds the last number; missing ones are 0.
func (c *clockParts) finish(n int) {
	for c.add(n) {
		n = 0
	}
}

// expects reports whether n can be the next number.
func (c *clockParts) expects(n int) bool {
	limits := []int{0, 60, 60, 1000}
	return len(c.numbers) > 0 && len(c.numbers) < 4 && n < limits[len(c.numbers)]
}

// milliseconds returns the milliseconds since midnight; 24:00 is allowed.
func (c *clockParts) milliseconds() (float64, bool) {
	n := append(append([]int(nil), c.numbers...), 0, 0, 0, 0)
	hour, minute, second, ms := n[0], n[1], n[2], n[3]
	if c.halved {
		if hour > 12 {
			return 0, false
		}
		hour = hour%12 + c.half
	}
	valid := hour < 24 && minute < 60 && second < 60 && ms < 1000 || hour == 24 && minute == 0 && second == 0 && ms == 0
	return float64(((hour*60+minute)*60+second)*1000 + ms), valid
}

// zoneParts collects an offset from UTC. It is 0 if nothing was set.
type zoneParts struct {
	sign                  int
	hours, minutes        int
	hoursKnown, minsKnown bool
}

func (z *zoneParts) set(hours int) {
	z.setSign(hours >= 0)
	z.setHours(int(math.Abs(float64(hours))))
	z.setMinutes(0)
}

func (z *zoneParts) setSign(east bool) {
	z.sign = -1
	if east {
		z.sign = 1
	}
}

func (z *zoneParts) setHours(n int)   { z.hours, z.hoursKnown = n, true }
func (z *zoneParts) setMinutes(n int) { z.minutes, z.minsKnown = n, true }

// expects reports whether n can be the minutes of an offset.
func (z *zoneParts) expects(n int) bool { return z.hoursKnown && !z.minsKnown && n < 60 }

// utc reports whether the text named UTC as its zone.
func (z *zoneParts) utc() bool { return z.hoursKnown && z.minsKnown && z.hours == 0 && z.minutes == 0 }

// milliseconds computes the seconds in 32 bits, as the reference's engine does.
func (z *zoneParts) milliseconds() (float64, bool) {
	seconds := uint32(z.hours*60+z.minutes) * 60
	return float64(z.sign) * float64(seconds) * 1000, seconds <= math.MaxInt32
}
