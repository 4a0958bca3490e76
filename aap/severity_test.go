package aap

import (
	"testing"

	"github.com/plumbline/plumbline/schema"
)

// TestSeverities: each violation has the severity of AAP section 7.5.
func TestSeverities(t *testing.T) {
	j, err := NewJudge(DefaultThresholds())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		violation string
		want      schema.Severity
		trace     []string
	}{
		{schema.UnboundedAction, schema.SeverityHigh, []string{searchName, `"name": "fly"`}},
		{schema.ForbiddenAction, schema.SeverityCritical, []string{searchName, `"name": "delete"`}},
		{schema.MissedEscalation, schema.SeverityHigh, []string{cheap, bought}},
		{schema.UndeclaredValue, schema.SeverityMedium, []string{`["honesty"]`, `["profit"]`}},
		{schema.CardExpired, schema.SeverityHigh, []string{"2026-03-01", "2026-08-01"}},
		{schema.CardMismatch, schema.SeverityCritical, []string{`"card_id": "ac-1"`, `"card_id": "ac-2"`}},
	} {
		var v schema.Verdict
		j.Verify(admitted(t, replace(t, traceText, c.trace...)), compiled(t, cardText), Facts{GivenApart: true}, now, &v)
		found := false
		for _, violation := range v.Violations {
			if violation.Type == c.violation {
				found = violation.Severity == c.want
			}
		}
		if !found {
			t.Errorf("want %s with %s, got %+v", c.violation, c.want, v.Violations)
		}
	}
}
