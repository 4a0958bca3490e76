package eval

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A request gets an answer with any value in place of any of its members.
func TestMutilatedRequestsAreAnswered(t *testing.T) {
	both := `"trace":` + traceJSON + `,"card":` + cardJSON
	seeds := []string{
		ask("1", "verify", both),
		ask("2", "condition", `"condition":"constructor > 1","trace":`+traceJSON),
		ask("3", "drift", `"sustained_threshold":1,"similarity_threshold":0.9,"card":`+cardJSON+`,`+drifting()),
		ask("4", "coherence", `"my_card":`+cardJSON+`,"their_card":`+cardJSON+`,"task_values":["a"]`),
		ask("5", "fleet", `"cards":[{"agentId":"x","card":`+cardJSON+`},{"agentId":"y","card":`+cardJSON+`}]`),
		ask("6", "features", both), ask("7", "similarity", both), ask("8", "trace_similarities", `"sustained_threshold":2,`+drifting()),
	}
	rapid.Check(t, func(rt *rapid.T) {
		var request map[string]any
		if err := json.Unmarshal([]byte(rapid.SampledFrom(seeds).Draw(rt, "request")), &request); err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(1, 3).Draw(rt, "wounds") {
			wound(rt, request)
		}
		line, err := json.Marshal(request)
		if err != nil {
			rt.Fatal(err)
		}
		for _, profile := range []Profile{ProfileReference, ProfileSpec} {
			a := judge(t, profile, string(line))
			if len(a) != 1 || a[0].OK == (a[0].Error != "") {
				rt.Fatalf("%s: answers %+v to %s", profile, a, line)
			}
		}
	})
}

// wound replaces or removes a value at a random depth below the request's own members.
func wound(t *rapid.T, request map[string]any) {
	members := slices.DeleteFunc(slices.Sorted(maps.Keys(request)), func(name string) bool { return name == "id" || name == "op" })
	if len(members) == 0 {
		return
	}
	name := rapid.SampledFrom(members).Draw(t, "member")
	request[name] = wounded(t, request[name], 0)
}

func wounded(t *rapid.T, v any, depth int) any {
	if rapid.IntRange(0, 5).Draw(t, "here") == 0 && depth > 0 {
		return anything(t)
	}
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			return anything(t)
		}
		name := rapid.SampledFrom(slices.Sorted(maps.Keys(v))).Draw(t, "name")
		if rapid.IntRange(0, 9).Draw(t, "remove") == 0 {
			delete(v, name)
			return v
		}
		v[name] = wounded(t, v[name], depth+1)
		return v
	case []any:
		if len(v) == 0 {
			return anything(t)
		}
		i := rapid.IntRange(0, len(v)-1).Draw(t, "index")
		v[i] = wounded(t, v[i], depth+1)
		return v
	}
	return anything(t)
}

// anything returns a value that traces and cards do not expect.
func anything(t *rapid.T) any {
	return rapid.SampledFrom([]any{
		nil, true, false, 0.0, -1.5, 1e300, "", " ", ", ", "constructor", "__proto__", "2026-01-01", "x: y", "action_type == \"a\"",
		"amount > 1", []any{}, []any{nil}, []any{[]any{"a"}}, []any{map[string]any{"id": "a"}},
		map[string]any{}, map[string]any{"id": 1.0}, map[string]any{"toString": nil},
	}).Draw(t, "value")
}
