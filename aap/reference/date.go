package reference

import (
	"math"
	"time"
)

// isoLayout is the form of JavaScript's toISOString.
const isoLayout = "2006-01-02T15:04:05.000Z"

// maxMilliseconds is the latest time of a JavaScript Date.
const maxMilliseconds = 8.64e15

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

// clip returns NaN for a time outside the range of a Date.
func clip(ms float64) float64 {
	if math.Abs(ms) > maxMilliseconds {
		return math.NaN()
	}
	return ms
}

// parseDate is Date.parse of the reference's engine: the date-time format of ECMAScript, or
// else its older, lenient forms. A missing zone means UTC.
func parseDate(s string) float64 {
	p := dateParser{tokens: scanDate(s)}
	outcome := p.standard()
	if outcome == malformed || outcome == otherForm && !p.lenient() {
		return math.NaN()
	}
	year, month, day, dayOK := p.day.date(outcome == complete)
	clock, clockOK := p.clock.milliseconds()
	offset, zoneOK := p.zone.milliseconds()
	if !dayOK || !clockOK || !zoneOK {
		return math.NaN()
	}
	midnight := float64(time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC).Unix()) * 1000
	return clip(midnight + clock - offset)
}
