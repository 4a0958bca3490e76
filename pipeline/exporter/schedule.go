package exporter

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/plumbline/plumbline/pipeline/config"
)

// schedules are the times at which all open sessions are sealed.
type schedules []cron.Schedule

// parseSchedules parses cron expressions: five fields, or @daily, @every 6h and the like. Times
// are UTC unless an expression begins with CRON_TZ=. The faults name the setting key.
func parseSchedules(key string, expressions []string) (parsed schedules, faults config.Faults) {
	for i, expression := range expressions {
		schedule, err := cron.ParseStandard(expression)
		faults.Check(err == nil, fmt.Sprintf("%s[%d]", key, i), "%q: %v", expression, err)
		if err == nil {
			parsed = append(parsed, schedule)
		}
	}
	return parsed, faults
}

// ScheduleFaults returns the faults of the cron expressions in the setting key.
func ScheduleFaults(key string, expressions []string) config.Faults {
	_, faults := parseSchedules(key, expressions)
	return faults
}

// after returns the first time of any schedule after t; zero where there is none.
func (s schedules) after(t time.Time) (first time.Time) {
	for _, schedule := range s {
		if next := schedule.Next(t.UTC()); first.IsZero() || !next.IsZero() && next.Before(first) {
			first = next
		}
	}
	return first
}

// met reports whether a scheduled time has passed since the session was opened.
func (s *openSession) met(all schedules, now time.Time) bool {
	if len(all) == 0 {
		return false
	}
	if s.scheduled.IsZero() {
		s.scheduled = all.after(s.first)
	}
	return !s.scheduled.IsZero() && !s.scheduled.After(now)
}
