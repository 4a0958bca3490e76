package aap

import (
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/published"
)

// specificationExample returns JSON example number n, counted from 0, of a section of the
// specification's text.
func specificationExample(t *testing.T, section string, n int) string {
	t.Helper()
	raw := published.Read(t, "specs/aap-specification.txt")
	_, text, found := strings.Cut(string(raw), "\n"+section+"\n")
	for range n {
		_, text, _ = strings.Cut(text, "\n}\n")
	}
	start, end := strings.Index(text, "\n{"), strings.Index(text, "\n}\n")
	if !found || start < 0 || end < start {
		t.Fatalf("no example %d of section %q", n, section)
	}
	return text[start+1 : end+2]
}

// block returns the only member of an example, without the braces around it.
func block(example string) string {
	return strings.TrimSuffix(strings.TrimPrefix(example, "{"), "}")
}

// The examples of sections 4.9, 5.6 and 5.8 together have the results that the specification
// shows: a recommendation within bounds, and a purchase that was escalated and approved.
func TestSpecificationExamples(t *testing.T) {
	card, err := Register([]byte(specificationExample(t, "4.9 Complete Example", 0)))
	if err != nil {
		t.Fatal(err)
	}
	trace := specificationExample(t, "5.8 Complete Example", 0)
	unneeded := block(specificationExample(t, "5.6 Escalation Block", 0))
	approved := strings.Replace(block(specificationExample(t, "5.6 Escalation Block", 1)), "pending | approved | denied | timeout", "approved", 1)
	own := trace[strings.Index(trace, `  "escalation": {`):strings.Index(trace, `,

  "context": {`)]
	purchase := []string{`"recommend"`, `"execute"`, "product_recommendation", "purchase", `"bounded"`, `"escalation_trigger"`}
	j := judge(t)
	for _, c := range []struct {
		name    string
		changes []string
		want    string
		verdict schema.Recommendation
	}{
		{"5.8 by 4.9", nil, "", schema.Proceed},
		{"5.8 with 5.6 unneeded", []string{own, unneeded}, "", schema.Proceed},
		{"a purchase with 5.6 approved", append([]string{own, approved}, purchase...), "", schema.Proceed},
		{"a purchase that is not escalated", purchase, "MISSED_ESCALATION TRIGGER_MISREPORTED", schema.Deny},
		{"a purchase above what was approved", append([]string{own, approved, `"session_id"`, `"max_price": 51, "session_id"`}, purchase...),
			"APPROVAL_CONDITION_BROKEN", schema.Review},
		{"5.8 with the value that 5.6 observed", []string{own, unneeded, `"session_id"`, `"purchase_value": 45, "session_id"`}, "", schema.Proceed},
		{"5.8 with another value than 5.6 observed", []string{own, unneeded, `"session_id"`, `"purchase_value": 46, "session_id"`}, "TRIGGER_MISREPORTED", schema.Review},
		{"5.8 executed", []string{`"recommend"`, `"execute"`}, "UNBOUNDED_ACTION", schema.Deny},
	} {
		var v schema.Verdict
		j.Verify(admitted(t, replace(t, trace, c.changes...)), card, Facts{GivenApart: true}, now, &v)
		if got := remarks(&v); got != c.want || v.RecommendedAction != c.verdict || v.Verified != (len(v.Violations) == 0) {
			t.Errorf("%s: got %q, %s; want %q, %s", c.name, got, v.RecommendedAction, c.want, c.verdict)
		}
	}
}
