package eval

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema/published"
)

// Where no conflict is resolved automatically and no value is required twice, both profiles
// compute the same score. spec lists only the values that the task requires.
func TestPublishedCoherenceCasesUnderSpec(t *testing.T) {
	input := published.Read(t, "conformance/aap/cases.jsonl")
	compared, conflicting := 0, 0
	for line := range strings.Lines(string(input)) {
		if !strings.Contains(line, `"op": "coherence"`) && !strings.Contains(line, `"op": "fleet"`) {
			continue
		}
		spec, reference := judge(t, ProfileSpec, line)[0], judge(t, ProfileReference, line)[0]
		if !spec.OK {
			if !strings.Contains(spec.Error, "want a string, found an object") {
				t.Errorf("%s: %s", spec.ID, spec.Error)
			}
			continue
		}
		got, want := spec.Result.(map[string]any), reference.Result.(map[string]any)
		if metadata := got["coherence_metadata"].(map[string]any); metadata["profile"] != "spec" || metadata["engine_version"] == "" {
			t.Errorf("%s: metadata %v", spec.ID, metadata)
		}
		members := []string{"fleet_score", "min_pair_score", "max_pair_score", "outliers", "clusters", "divergence_report", "agent_summaries"}
		if _, pair := want["value_alignment"]; pair {
			members = []string{"score", "compatible", "proceed"}
			if text, err := json.Marshal(got); err != nil || strings.Contains(string(text), `"resolved_by"`) || strings.Contains(line, `"task_values": []`) {
				continue
			}
			if len(want["value_alignment"].(map[string]any)["conflicts"].([]any)) > 0 {
				conflicting++
			}
		}
		compared++
		for _, name := range members {
			if d := differ(name, got[name], want[name]); d != "" {
				t.Errorf("%s: %s", spec.ID, d)
			}
		}
	}
	if compared == 0 || conflicting == 0 {
		t.Errorf("%d cases were compared, %d of them with conflicts", compared, conflicting)
	}
}

// A card that cannot be registered is judged by its values, and the result says so.
func TestSpecJudgesTheValuesOfAnIncompleteCard(t *testing.T) {
	partial := `{"card_id":"k","values":{"declared":["b","p"],"conflicts_with":["q"],"definitions":{"p":{"subsumes":["q"],"priority":1}},"hierarchy":"weighted"}}`
	theirs := `{"card_id":"k","expires_at":"2026-12-31T00:00:00Z","values":{"declared":["b","p","q"]}}`
	a := judge(t, ProfileSpec, ask("1", "coherence", `"my_card":`+partial+`,"their_card":`+theirs+`,"task_values":["b"]`))[0]
	if !a.OK {
		t.Fatal(a.Error)
	}
	result := a.Result.(map[string]any)
	notes := result["incomplete_cards"].(map[string]any)
	if result["proceed"] != true || !strings.Contains(notes["my_card"].(string), "/agent_id: is missing") || notes["their_card"] == "" {
		t.Errorf("%v", result)
	}
	late := strings.Replace(ask("1", "coherence", `"my_card":`+partial+`,"their_card":`+theirs), `"op"`, `"now":"2027-01-01T00:00:00Z","op"`, 1)
	if raw, err := json.Marshal(judge(t, ProfileSpec, late)[0].Result); err != nil || !strings.Contains(string(raw), "card_expired") {
		t.Errorf("at a later time: %s, %v", raw, err)
	}
	whole := judge(t, ProfileSpec, ask("1", "coherence", `"my_card":`+cardJSON+`,"their_card":`+cardJSON))[0].Result.(map[string]any)
	if _, noted := whole["incomplete_cards"]; noted || whole["proceed"] != true {
		t.Errorf("whole cards: %v", whole)
	}
}

func TestSpecRefusesWhatHasNoCoherence(t *testing.T) {
	member := func(id string) string { return `{"agentId":"` + id + `","card":` + cardJSON + `}` }
	for _, c := range []struct{ op, members, want string }{
		{"coherence", `"my_card":{}`, "my_card: invalid_card"},
		{"coherence", `"my_card":{}`, "their_card: missing"},
		{"coherence", `"my_card":` + cardJSON + `,"their_card":` + cardJSON + `,"task_values":"a"`, "task_values"},
		{"fleet", `"cards":[]`, "at least 2"},
		{"fleet", `"x":[]`, "cards: missing"},
		{"fleet", `"cards":[{"agentId":"a","card":7},` + member("b") + `]`, "cards[0].card"},
		{"fleet", `"cards":[{"agentId":"a"},` + member("b") + `]`, "cards[0].card: missing"},
		{"fleet", `"cards":[` + member("a") + `,` + member("a") + `]`, "the same id"},
	} {
		a := judge(t, ProfileSpec, ask("1", c.op, c.members))[0]
		if a.OK || !strings.Contains(a.Error, c.want) {
			t.Errorf("%s: %+v, want an error that says %s", c.op, a, c.want)
		}
	}
}
