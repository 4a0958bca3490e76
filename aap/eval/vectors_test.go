package eval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/plumbline/plumbline/schema/published"
)

// vectorLine is one line of docs/vectors, without the request.
type vectorLine struct {
	ID, Tag, Why string
	Expected     struct {
		OK     bool
		Result any
		Warned []any
	}
}

// The vectors of section 4.6, for other implementations.
func TestConditionVectors(t *testing.T) { runVectors(t, "conditions.jsonl", 316) }

// The vectors of verdicts (AAP section 7) where the specification is ambiguous.
func TestVerdictVectors(t *testing.T) { runVectors(t, "verdicts.jsonl", 73) }

// The vectors of value coherence (AAP section 6).
func TestCoherenceVectors(t *testing.T) { runVectors(t, "coherence.jsonl", 21) }

// runVectors compares our answers with those in a file, which must have at least that many
// vectors.
func runVectors(t *testing.T, file string, least int) {
	input, err := os.ReadFile(filepath.Join("..", "..", "docs", "vectors", file))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(input), []byte("\n"))
	if len(lines) < least {
		t.Errorf("%d vectors, want %d at least", len(lines), least)
	}
	answers := judge(t, ProfileSpec, string(input))
	if len(answers) != len(lines) {
		t.Fatalf("%d answers to %d vectors", len(answers), len(lines))
	}
	known := map[string]bool{}
	for i, line := range lines {
		var want vectorLine
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatal(err)
		}
		if want.Tag == "" || want.Why == "" || known[want.ID] {
			t.Errorf("vector %s lacks tag or reason, or its id is not its own", want.ID)
		}
		known[want.ID] = true
		t.Run(want.ID+" "+want.Tag, func(t *testing.T) { compareVector(t, &want, answers[i]) })
	}
}

func compareVector(t *testing.T, want *vectorLine, got answer) {
	if got.ID != want.ID || got.OK != want.Expected.OK {
		t.Fatalf("%s: answer to %s, ok %v (%s)", want.Why, got.ID, got.OK, got.Error)
	}
	if lack := lacks("result", got.Result, want.Expected.Result); lack != "" {
		t.Errorf("%s: %s", want.Why, lack)
	}
	if want.Expected.Warned != nil {
		if lack := lacks("warned", warned(got.Result), want.Expected.Warned); lack != "" {
			t.Errorf("%s: %s", want.Why, lack)
		}
	}
}

// warned returns the types of a verdict's warnings, without low_behavioral_similarity, which
// depends on a threshold.
func warned(result any) (types []any) {
	verdict, _ := result.(map[string]any)
	warnings, _ := verdict["warnings"].([]any)
	for _, warning := range warnings {
		warning, _ := warning.(map[string]any)
		if kind := warning["type"]; kind != "low_behavioral_similarity" {
			types = append(types, kind)
		}
	}
	return types
}

// lacks returns the first place where got lacks a part of want, "" where there is none. Objects
// may have additional members; an absent list counts as empty.
func lacks(path string, got, want any) string {
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is no object", path)
		}
		for name := range want {
			if lack := lacks(path+"."+name, got[name], want[name]); lack != "" {
				return lack
			}
		}
		return ""
	case []any:
		got, _ := got.([]any)
		if len(got) != len(want) {
			return fmt.Sprintf("%s is %v, want %v", path, got, want)
		}
		for i := range want {
			if lack := lacks(fmt.Sprintf("%s[%d]", path, i), got[i], want[i]); lack != "" {
				return lack
			}
		}
		return ""
	}
	if got != want {
		return fmt.Sprintf("%s is %v, want %v", path, got, want)
	}
	return ""
}

// The published cases use incomplete traces. Profile spec answers them as well, with the result
// of the condition on the members that exist.
func TestConditionsOfPartialTraces(t *testing.T) {
	const action = `"action":{"type":"purchase","name":"buy","parameters":{"price":"99.50","s":7}}`
	for condition, want := range map[string]bool{
		`action_type == 'purchase' and action_name == 'buy'`: true, `price < 100`: true, `s == 7`: true, `s == 8`: true, `note`: true,
		`meta.deep > 1`: true, `context.meta.deep == null`: false, `context.metadata.meta.deep == 2`: true, `own.x`: true, `missing`: false,
	} {
		trace := `{` + action + `,"context":{"note":"x","metadata":{"s":8,"meta":{"deep":2}}},"own":{"x":1}}`
		got := judge(t, ProfileSpec, ask("1", "condition", fmt.Sprintf(`"condition":%q,"trace":%s`, condition, trace)))[0]
		result, _ := got.Result.(map[string]any)
		if !got.OK || result["matched"] != want {
			t.Errorf("%s: %v (%s), want %v", condition, got.Result, got.Error, want)
		}
	}
	for trace, want := range map[string]bool{`{}`: true, `{"action":7,"context":"x"}`: true, `[]`: false, `null`: false, `{"a":1,"a":2}`: false, `{"a":"\ud800"}`: false} {
		if got := judge(t, ProfileSpec, ask("1", "condition", `"condition":"a == 1","trace":`+trace))[0]; got.OK != want {
			t.Errorf("%s: %v %s", trace, got.OK, got.Error)
		}
	}
}

func TestPublishedConditionsUnderSpec(t *testing.T) {
	input := published.Read(t, "conformance/aap/cases.jsonl")
	asked := 0
	for _, got := range judge(t, ProfileSpec, string(input)) {
		if got.Op != "condition" {
			continue
		}
		asked++
		result, _ := got.Result.(map[string]any)
		if _, parsed := result["parsed"].(bool); !got.OK || !parsed {
			t.Errorf("%s: %v %s", got.ID, got.Result, got.Error)
		}
	}
	if asked == 0 {
		t.Error("no condition among the published cases")
	}
}
