package schema

import (
	"errors"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrTime is the error of ParseTime for a text that is no time.
var ErrTime = errors.New("not an RFC 3339 time with a zone, such as 2026-01-31T12:30:00Z")

// The offsets of the parts of an RFC 3339 time: 2026-01-31T12:30:00Z.
const (
	timeLetter  = len("2026-01-31")
	timeMinute  = len("2026-01-31T12")
	timeSeconds = len("2026-01-31T12:30:")
)

// ParseTime reads an RFC 3339 time with a zone and returns it in UTC. T and Z may be in lower
// case. Second 60 is a leap second, the last second of a day in UTC. time.Time cannot represent
// it, so it counts as the following second, as in POSIX.
func ParseTime(text string) (time.Time, error) {
	if len(text) <= timeSeconds+len("00") || text[timeLetter] != 'T' && text[timeLetter] != 't' {
		return time.Time{}, ErrTime
	}
	normal, leap := text, text[timeSeconds:timeSeconds+2] == "60"
	if last := len(text) - 1; leap || text[timeLetter] == 't' || text[last] == 'z' {
		b := []byte(text)
		b[timeLetter] = 'T'
		if b[last] == 'z' {
			b[last] = 'Z'
		}
		if leap {
			copy(b[timeSeconds:], "59")
		}
		normal = string(b)
	}
	at, err := time.Parse(time.RFC3339Nano, normal)
	if err != nil || tooLenient(normal) {
		return time.Time{}, ErrTime
	}
	at = at.UTC()
	if leap {
		if at.Hour() != 23 || at.Minute() != 59 {
			return time.Time{}, ErrTime
		}
		at = at.Add(time.Second)
	}
	return at, nil
}

// tooLenient reports whether text breaks RFC 3339 although time.Parse accepts it: by an hour of
// one digit, a comma before the fraction, a zone of a day or more, or a zone with 60 minutes or
// more.
func tooLenient(text string) bool {
	zone := text[max(len(text)-len("24:00"), 0):]
	return text[timeMinute] != ':' || strings.Contains(text, ",") ||
		text[len(text)-1] != 'Z' && (zone >= "24:00" || zone[len("24:"):] >= "60")
}

// Time is a time in JSON or on a command line; ParseTime reads it.
type Time struct{ time.Time }

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *Time) UnmarshalText(text []byte) (err error) {
	t.Time, err = ParseTime(string(text))
	return err
}

// UnmarshalJSON implements json.Unmarshaler. null changes nothing.
func (t *Time) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return ErrTime
	}
	return t.UnmarshalText(text)
}
