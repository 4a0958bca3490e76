package reference

import (
	"math"
	"regexp"
	"strconv"
	"time"
)

// millisecond layouts of JavaScript's toISOString.
const isoLayout = "2006-01-02T15:04:05.000Z"

// isoDate is the date-time format of ECMAScript, with the liberties that the
// reference's engine takes: a blank or small letter for T, any number of
// fraction digits, and an offset without a colon.
var isoDate = regexp.MustCompile(`^(\d{4}|[+-]\d{6})(?:-(\d\d)(?:-(\d\d))?)?` +
	`(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?(?:([Zz])|([+-])(\d\d):?(\d\d))?)?$`)

// otherDates are the further formats that are understood.
var otherDates = []string{
	time.RFC1123, time.RFC1123Z, "2006/01/02", "2006/01/02 15:04:05", "Jan 2, 2006", "Jan 2, 2006 15:04:05",
	"January 2, 2006", "2 Jan 2006", "2 January 2006", "01/02/2006",
}

// milliseconds is JavaScript's new Date(n).getTime(): milliseconds since 1970,
// NaN for what is no date.
func (n value) milliseconds() float64 {
	switch v := n.v.(type) {
	case Undefined, map[string]any:
		return math.NaN()
	case nil, bool, float64:
		ms := n.number()
		if math.Abs(ms) > 8.64e15 {
			return math.NaN()
		}
		return math.Trunc(ms)
	case string:
		return parseDate(v)
	}
	return parseDate(n.string())
}

func parseDate(s string) float64 {
	if parts := isoDate.FindStringSubmatch(s); parts != nil {
		return isoMilliseconds(parts)
	}
	for _, layout := range otherDates {
		if t, err := time.Parse(layout, trim(s)); err == nil {
			return float64(t.UnixMilli())
		}
	}
	return math.NaN()
}

// isoMilliseconds evaluates the parts of isoDate. A day that the month does
// not have runs over into the next, as in the reference's engine.
func isoMilliseconds(parts []string) float64 {
	field := func(i, absent int) int {
		if n, err := strconv.Atoi(parts[i]); err == nil {
			return n
		}
		return absent
	}
	year, month, day := field(1, 0), field(2, 1), field(3, 1)
	hour, minute, second := field(4, 0), field(5, 0), field(6, 0)
	midnight := hour == 24 && minute == 0 && second == 0 && field(7, 0) == 0
	if month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 && !midnight || minute > 59 || second > 59 {
		return math.NaN()
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC)
	return float64(t.UnixMilli() + fraction(parts[7]) - offset(parts))
}

// fraction returns the first three digits of a fraction of a second as milliseconds.
func fraction(digits string) int64 {
	ms, err := strconv.ParseInt((digits + "000")[:3], 10, 64)
	if err != nil {
		return 0
	}
	return ms
}

// offset returns the offset from UTC in milliseconds.
func offset(parts []string) int64 {
	if parts[9] == "" {
		return 0
	}
	hours := int64(parts[10][0]-'0')*10 + int64(parts[10][1]-'0')
	minutes := int64(parts[11][0]-'0')*10 + int64(parts[11][1]-'0')
	ms := (hours*60 + minutes) * 60_000
	if parts[9] == "-" {
		return -ms
	}
	return ms
}
