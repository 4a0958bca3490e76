package eval

import (
	"testing"

	"github.com/plumbline/plumbline/schema/published"
)

// Requests whose category would be false: the card declares every value, or every trace escalates.
// Both profiles raise the alert of the published SDK, and name no category, as it does.
func TestDriftLabelsAreTrue(t *testing.T) {
	input := published.Read(t, "conformance/aap/drift_labels.jsonl")
	for _, profile := range []Profile{ProfileSpec, ProfileReference} {
		answers := judge(t, profile, string(input))
		if len(answers) != 2 {
			t.Fatalf("%s: %d answers, want 2", profile, len(answers))
		}
		for _, a := range answers {
			alerts, _ := a.Result.([]any)
			if !a.OK || len(alerts) != 1 {
				t.Errorf("%s: %s: %+v, want one alert", profile, a.ID, a)
				continue
			}
			analysis := alerts[0].(map[string]any)["analysis"].(map[string]any)
			if direction := analysis["drift_direction"]; direction != "unknown" {
				t.Errorf("%s: %s: category %v, want unknown", profile, a.ID, direction)
			}
		}
	}
}
