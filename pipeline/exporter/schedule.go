package exporter

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/plumbline/plumbline/pipeline/run"
)

// schedules are times at which whatever is open is sealed.
type schedules []cron.Schedule

// parseSchedules reads cron expressions: five fields, or @daily, @every 6h and the
// like; times are UTC where an expression does not begin with CRON_TZ=. The faults are
// those of the setting key.
func parseSchedules(key string, expressions []string) (parsed schedules, faults run.Faults) {
	for i, expression := range expressions {
		schedule, err := cron.ParseStandard(expression)
		faults.Check(err == nil, fmt.Sprintf("%s[%d]", key, i), "%q: %v", expression, err)
		if err == nil {
			parsed = append(parsed, schedule)
		}
	}
	return parsed, faults
}

// ScheduleFaults finds what is no cron expression in the setting key.
func ScheduleFaults(key string, expressions []string) run.Faults {
	_, faults := parseSchedules(key, expressions)
	return faults
}

// after is the first time of any schedule after t; zero where there is none.
func (s schedules) after(t time.Time) (first time.Time) {
	for _, schedule := range s {
		if next := schedule.Next(t.UTC()); first.IsZero() || !next.IsZero() && next.Before(first) {
			first = next
		}
	}
	return first
}

// met reports whether a scheduled time has come since the session is open.
func (s *openSession) met(all schedules, now time.Time) bool {
	if len(all) == 0 {
		return false
	}
	if s.scheduled.IsZero() {
		s.scheduled = all.after(s.first)
	}
	return !s.scheduled.IsZero() && !s.scheduled.After(now)
}
