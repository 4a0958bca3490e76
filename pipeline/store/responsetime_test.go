package store

import (
	"strings"
	"testing"
)

// The time of a response is read in every form that a trace may use.
func TestTimesOfResponses(t *testing.T) {
	s, _ := open(t)
	b := s.NewTraceBatch()
	forms := map[string]string{
		"2026-11-20T12:05:00Z":            "2026-11-20 12:05:00.000000000",
		"2026-11-20t12:05:00z":            "2026-11-20 12:05:00.000000000",
		"2026-11-20t12:05:00.123456789z":  "2026-11-20 12:05:00.123456789",
		"2026-11-20T13:05:00.5+01:00":     "2026-11-20 12:05:00.500000000",
		"2016-12-31T23:59:60Z":            "2017-01-01 00:00:00.000000000",
		"2016-12-31t15:59:60.25-08:00":    "2017-01-01 00:00:00.250000000",
		"2026-11-20T12:05:00.1234567891Z": "2026-11-20 12:05:00.123456789",
	}
	sequence := uint64(0)
	for text := range forms {
		sequence++
		raw := strings.Replace(string(numbered(t, int(sequence)).Raw), "2026-11-20T12:05:00Z", text, 1)
		trace := admit(t, raw)
		b.Add(trace, meta(trace, sequence), wholeVerdict(trace))
	}
	insert(t, s, b)
	for text, want := range forms {
		got := one[string](t, s, "SELECT ifNull(toString(response_time), 'none') FROM traces WHERE JSONExtractString(raw, 'escalation', 'principal_response', 'timestamp') = '"+text+"'")
		if got != want {
			t.Errorf("%s is read as %s, want %s", text, got, want)
		}
	}
}
