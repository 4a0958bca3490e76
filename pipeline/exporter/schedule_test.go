package exporter

import (
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/schema"
)

func TestSchedules(t *testing.T) {
	at := func(text string) time.Time {
		parsed, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	for name, c := range map[string]struct {
		expressions []string
		first       string // when the session began
		now         string
		due         string
	}{
		"none":                {nil, "2026-03-01T00:00:00Z", "2026-03-01T00:20:00Z", ""},
		"before the time":     {[]string{"30 2 * * *"}, "2026-03-01T02:00:00Z", "2026-03-01T02:29:59Z", ""},
		"at the time":         {[]string{"30 2 * * *"}, "2026-03-01T02:00:00Z", "2026-03-01T02:30:00Z", seal.ReasonSchedule},
		"begun at the time":   {[]string{"30 2 * * *"}, "2026-03-01T02:30:00Z", "2026-03-01T02:40:00Z", ""},
		"the earlier of two":  {[]string{"@daily", "*/10 * * * *"}, "2026-03-01T02:01:00Z", "2026-03-01T02:10:00Z", seal.ReasonSchedule},
		"of another zone":     {[]string{"CRON_TZ=Asia/Tokyo 0 9 * * *"}, "2026-03-01T23:50:00+09:00", "2026-03-02T00:00:00Z", seal.ReasonSchedule},
		"a zone of the clock": {[]string{"0 9 * * *"}, "2026-03-01T17:50:00+09:00", "2026-03-01T18:00:00+09:00", seal.ReasonSchedule},
		"every":               {[]string{"@every 5m"}, "2026-03-01T00:00:00Z", "2026-03-01T00:05:00Z", seal.ReasonSchedule},
		"never":               {[]string{"0 0 30 2 *"}, "2026-03-01T00:00:00Z", "2026-03-01T00:20:00Z", ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Default()
			cfg.Schedule = c.expressions
			if faults := cfg.Validate(); len(faults) > 0 {
				t.Fatal(faults)
			}
			times, _ := parseSchedules("schedule", cfg.Schedule)
			first, now := at(c.first), at(c.now)
			s := &openSession{first: first, last: now, highest: 1, receipts: []schema.Receipt{{Sequence: 1}}}
			if due := s.due(&cfg, times, now, 1); due != c.due {
				t.Errorf("due for %q, want %q", due, c.due)
			}
		})
	}
}

func TestBadSchedulesAreReported(t *testing.T) {
	cfg := Default()
	cfg.Schedule = []string{"@daily", "every day", "61 * * * *", "CRON_TZ=Nowhere/Land 0 0 * * *"}
	var faults []string
	for _, f := range cfg.Validate() {
		faults = append(faults, f.String())
	}
	text := strings.Join(faults, "\n")
	for _, want := range []string{"schedule[1]", "schedule[2]", "schedule[3]"} {
		if !strings.Contains(text, want) {
			t.Errorf("no fault at %s in:\n%s", want, text)
		}
	}
	if len(faults) != 3 {
		t.Errorf("faults are:\n%s", text)
	}
}
