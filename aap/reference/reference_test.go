package reference

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

const cardJSON = `{"card_id":"ac","expires_at":"2026-12-01T00:00:00Z",
	"principal":{"type":"human","relationship":"advisory"},
	"values":{"declared":["honesty",{"id":"privacy"},7,null],"conflicts_with":["profit"]},
	"autonomy":{"bounded_actions":["search","exec: run it"],"forbidden_actions":["delete"],
		"escalation_triggers":[{"condition":"amount > 100","action":"escalate"}]},
	"audit":{"queryable":true,"tamper_evidence":"merkle"}}`

const traceJSON = `{"trace_id":"t1","agent_id":"a","card_id":"ac","timestamp":"2026-02-01T00:00:00Z",
	"action":{"type":"execute","name":"search","category":"bounded","parameters":{"amount":"150 USD"}},
	"decision":{"alternatives_considered":[{"option_id":"o","score":0.125}],"values_applied":["honesty"],"confidence":0.9},
	"escalation":{"evaluated":true,"required":true,"escalation_status":"timeout"},
	"context":{"metadata":{"flag":true}}}`

// tree decodes JSON and sets the member at a dotted path to value, or removes it for "absent".
func tree(t *testing.T, text, path, value string) any {
	t.Helper()
	root := decoded(t, text)
	if path == "" {
		return root
	}
	names := strings.Split(path, ".")
	object := root.(*Object)
	for _, name := range names[:len(names)-1] {
		object = object.members[name].(*Object)
	}
	last := names[len(names)-1]
	if value == "absent" {
		delete(object.members, last)
		return root
	}
	object.members[last] = decoded(t, value)
	return root
}

// objectOf returns an object of alternating names and members.
func objectOf(namesAndMembers ...any) *Object {
	o := &Object{members: map[string]any{}}
	for i := 0; i < len(namesAndMembers); i += 2 {
		o.set(namesAndMembers[i].(string), namesAndMembers[i+1])
	}
	slices.SortStableFunc(o.names, compareNames)
	return o
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	v, err := Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// kinds verifies the standard trace and card, one of them with a changed member.
func kinds(t *testing.T, trace, card any) (violations, warnings []string) {
	t.Helper()
	v, err := Verify(trace, card, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range v.Violations {
		violations = append(violations, r.Type)
	}
	for _, r := range v.Warnings {
		warnings = append(warnings, r.Type)
	}
	return violations, warnings
}

func TestVerifyOnTheTrace(t *testing.T) {
	for _, c := range []struct {
		path, value string
		want        []string
	}{
		{"", "", nil},
		{"card_id", `"other"`, []string{"card_mismatch"}},
		{"card_id", "absent", []string{"card_mismatch"}},
		{"action.name", `"exec, search"`, nil},
		{"action.name", `"exec,search"`, []string{"unbounded_action"}},
		{"action.name", `"SEARCH"`, []string{"unbounded_action"}},
		{"action.name", `"delete"`, []string{"unbounded_action", "forbidden_action"}},
		{"action.name", `"search, delete"`, []string{"unbounded_action"}}, // a way to evade the SDK
		{"action.name", `", "`, []string{"forbidden_action"}},             // a false alarm of the SDK
		{"escalation", "null", []string{"missed_escalation"}},
		{"decision.values_applied", `["honesty","privacy","Honesty","7"]`, []string{"undeclared_value", "undeclared_value"}},
		{"decision.values_applied", `[{"id":"privacy"},7]`, nil},
	} {
		got, _ := kinds(t, tree(t, traceJSON, c.path, c.value), decoded(t, cardJSON))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s = %s: violations %v, want %v", c.path, c.value, got, c.want)
		}
	}
}

func TestVerifyOnTheCard(t *testing.T) {
	for _, c := range []struct {
		path, value string
		want        []string
	}{
		{"expires_at", `"2026-03-01T00:00:00Z"`, nil},
		{"expires_at", `"2026-02-28T23:59:59.999Z"`, []string{"card_expired"}},
		{"expires_at", `1`, []string{"card_expired"}},
		{"expires_at", `"whenever"`, nil},
		{"autonomy.forbidden_actions", "null", nil},
		{"values.declared", "null", []string{"undeclared_value"}},
		{"card_id", "absent", []string{"card_mismatch"}},
	} {
		got, _ := kinds(t, decoded(t, traceJSON), tree(t, cardJSON, c.path, c.value))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s = %s: violations %v, want %v", c.path, c.value, got, c.want)
		}
	}
}

func TestWarnings(t *testing.T) {
	_, got := kinds(t, decoded(t, traceJSON), decoded(t, cardJSON))
	want := []string{"escalation_timeout", "near_boundary", "low_behavioral_similarity"}
	if !slices.Equal(got, want) {
		t.Errorf("warnings %v, want %v", got, want)
	}
	v, err := Verify(decoded(t, traceJSON), decoded(t, cardJSON), now)
	if err != nil {
		t.Fatal(err)
	}
	if got := v.Warnings[1].Description; got != "Alternative 'o' score 0.13 near boundary" {
		t.Errorf("text %q", got)
	}
	if v.Timestamp != "2026-03-01T00:00:00.000Z" || v.RecommendedAction != "review" || !v.Verified {
		t.Errorf("verification %+v", v)
	}
}

func TestWhereTheSDKThrows(t *testing.T) {
	for _, c := range []struct{ of, path, value, want string }{
		{"trace", "action", "absent", "trace.action"},
		{"trace", "decision.values_applied", "null", "trace.decision.values_applied"},
		{"trace", "decision.alternatives_considered", "null", "trace.decision.alternatives_considered"},
		{"trace", "decision.alternatives_considered", "[null]", "trace.decision.alternatives_considered[0]"},
		{"trace", "decision.confidence", `"0.1"`, "trace.decision.confidence"},
		{"card", "principal", "absent", "card.principal"},
		{"card", "values", "null", "card.values"},
		{"card", "autonomy.bounded_actions", "[7]", "card.autonomy.bounded_actions[0]"},
		{"card", "autonomy.escalation_triggers", `[{"action":"log"}]`, "card.autonomy.escalation_triggers[0].condition"},
	} {
		trace, card := decoded(t, traceJSON), decoded(t, cardJSON)
		if c.of == "trace" {
			trace = tree(t, traceJSON, c.path, c.value)
		} else {
			card = tree(t, cardJSON, c.path, c.value)
		}
		_, err := Verify(trace, card, now)
		var thrown *Error
		if !errors.As(err, &thrown) || thrown.Path != c.want {
			t.Errorf("%s.%s = %s: error %v, want one at %s", c.of, c.path, c.value, err, c.want)
		}
	}
	if _, err := Verify(nil, decoded(t, cardJSON), now); err == nil {
		t.Error("a null trace gives no error")
	}
}

func TestConditions(t *testing.T) {
	for _, c := range []struct {
		condition       string
		matched, parsed bool
	}{
		{"", false, true},
		{`action_type == "execute"`, true, true},
		{`not my_action_type == "execute"`, true, true},
		{`action_type == 'execute'`, false, false},
		{"amount > 100", true, true},
		{"amount > 100\n", true, true},
		{"amount >= 150", true, true},
		{"amount => 1", false, true},
		{"amount > -1", false, false},
		{"absent < 5", false, true},
		{"flag", true, true},
		{"amount", false, true}, // a field alone is not looked up in the parameters
		{"toString", true, true},
		{"constructor > 5", false, true},
		{"flag and flag", false, false},
	} {
		got, err := Condition(c.condition, decoded(t, traceJSON))
		if err != nil {
			t.Fatal(err)
		}
		if got.Matched != c.matched || got.Parsed != c.parsed {
			t.Errorf("%q: %+v, want matched %v, parsed %v", c.condition, got, c.matched, c.parsed)
		}
	}
}

func TestCoherence(t *testing.T) {
	for _, c := range []struct {
		name, mine, theirs string
		task               any
		score              float64
		compatible         bool
	}{
		{"same", `["a","b"]`, `["b","a"]`, Undefined{}, 1, true},
		{"seven of ten", `["a","b","c","d","e","f","g"]`, `["a","b","c","d","e","f","g","h","i","j"]`, nil, 0.7, true},
		{"no values", `[]`, `null`, nil, 0, false},
		{"task met", `["a","b"]`, `["a","x"]`, []any{"a"}, 1, true},
		{"empty task", `["a"]`, `["a"]`, []any{}, 0, false},
		{"task of no texts", `["a"]`, `["a"]`, []any{"a", 7.0, 7.0, []any{}, []any{}}, 0.25, false},
	} {
		got, err := CheckCoherence(card(t, c.mine, "null"), card(t, c.theirs, "null"), c.task)
		if err != nil {
			t.Fatal(err)
		}
		if got.Score != c.score || got.Compatible != c.compatible || got.Proceed != c.compatible || got.ProposedResolution != nil {
			t.Errorf("%s: %+v, want score %v", c.name, got, c.score)
		}
	}
	got, err := CheckCoherence(card(t, `["a","b"]`, `["c"]`), card(t, `["a","c"]`, "null"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Score != 0.2778 || got.ProposedResolution == nil || len(got.ValueAlignment.Conflicts) != 1 {
		t.Errorf("with a conflict: %+v", got)
	}
}

func card(t *testing.T, declared, conflicts string) any {
	return decoded(t, `{"values":{"declared":`+declared+`,"conflicts_with":`+conflicts+`}}`)
}

func TestFleet(t *testing.T) {
	member := func(id string, card any) any { return objectOf("agentId", id, "card", card) }
	both := card(t, `["a","b"]`, "null")
	f, err := CheckFleet([]any{
		member("x", both), member("z", card(t, `["c"]`, `["a"]`)), member("y", both), member("w", both),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if f.Score != 0.5 || f.MinPairScore != 0 || f.MaxPairScore != 1 || f.PairCount != 6 {
		t.Errorf("fleet %+v", f)
	}
	if len(f.Clusters) != 2 || !slices.Equal(f.Clusters[0].AgentIDs, []Echo{{"x"}, {"y"}, {"w"}}) || f.Clusters[1].InternalCoherence != 1 {
		t.Errorf("clusters %+v", f.Clusters)
	}
	if len(f.Outliers) != 1 || f.Outliers[0].AgentID.v != "z" || !slices.Equal(f.Outliers[0].PrimaryConflicts, []string{"a"}) {
		t.Errorf("outliers %+v", f.Outliers)
	}
	if f.Divergences[0].Value != "c" || f.Divergences[0].Impact != 0.75 || f.Divergences[1].Value != "a" {
		t.Errorf("divergences %+v", f.Divergences)
	}
	if s := f.Summaries[1]; s.AgentID.v != "z" || s.ClusterID != 1 || !s.IsOutlier || s.Conflicts != 3 || s.MeanScore != 0 {
		t.Errorf("summary %+v", s)
	}
}

func TestFleetRefuses(t *testing.T) {
	member := objectOf("agentId", "x", "card", card(t, "[]", "null"))
	for name, cards := range map[string]any{
		"one card": []any{member}, "no list": Undefined{}, "a text": "ab", "no card": []any{member, objectOf("agentId", "y")},
	} {
		if _, err := CheckFleet(cards, nil); err == nil {
			t.Errorf("%s gives no error", name)
		}
	}
}

// Cards with equal ids are one agent, whatever the type of the ids. The result omits an absent
// id.
func TestFleetOfOddIDs(t *testing.T) {
	one, other := card(t, `["a"]`, "null"), card(t, `["b"]`, `["a"]`)
	f, err := CheckFleet([]any{
		objectOf("agentId", "x", "card", one), objectOf("agentId", "x", "card", other),
		objectOf("agentId", 1.0, "card", one), objectOf("card", one), objectOf("agentId", []any{}, "card", one),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if f.AgentCount != 5 || f.PairCount != 10 || len(f.Clusters) != 1 || f.Score != 0.6 {
		t.Errorf("fleet %+v", f)
	}
	if s := f.Summaries; s[0].MeanScore != s[1].MeanScore || s[0].Compatible != 3 || s[0].Conflicts != 5 || s[0].MeanScore != 0.375 {
		t.Errorf("summaries of one agent %+v", f.Summaries[:2])
	}
	if d := f.Divergences; len(d) != 2 || len(d[0].Missing) != 2 || len(d[0].Conflicting) != 2 || len(d[1].Declaring) != 2 {
		t.Errorf("divergences %+v: an agent has the values of its last card", d)
	}
	pair, err := f.Pairs[8].A.MarshalJSON()
	if err != nil || string(pair) != "1" || !f.Summaries[3].AgentID.IsZero() {
		t.Errorf("pair %s, %v; summary %+v", pair, err, f.Summaries[3])
	}
}

// An array inherits a member values, which is a function and declares nothing.
func TestCoherenceOfAnArray(t *testing.T) {
	c, err := CheckCoherence([]any{}, card(t, `["a"]`, "null"), nil)
	if err != nil || c.Score != 0 || !slices.Equal(c.ValueAlignment.Unmatched, []string{"a"}) {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestAlternativesThatAreNoList(t *testing.T) {
	for text, want := range map[string]int{
		`"abc"`: 0, "5": 0, "{}": 0, `{"length":"1","0":{"score":0.1}}`: 1, `{"length":1,"0":{"score":0.1},"1":{"score":0.1}}`: 1,
	} {
		_, warnings := kinds(t, tree(t, traceJSON, "decision.alternatives_considered", text), decoded(t, cardJSON))
		if got := len(warnings) - 2; got != want {
			t.Errorf("%s: warnings %v, want %d near a boundary", text, warnings, want)
		}
	}
	if _, err := Verify(tree(t, traceJSON, "decision.alternatives_considered", `{"length":1}`), decoded(t, cardJSON), now); err == nil {
		t.Error("a missing alternative gives no error")
	}
}

func TestListsWithinLists(t *testing.T) {
	card := tree(t, cardJSON, "autonomy.bounded_actions", `[["search"],[":"],[{"b":1,"a":[1e400]}]]`)
	v, err := Verify(decoded(t, traceJSON), card, now)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := v.Violations[0].Description, `Action 'search' not in bounded_actions: [["search"],[":"],[{"b":1,"a":[null]}]]`; got != want {
		t.Errorf("text %s, want %s", got, want)
	}
	card = tree(t, cardJSON, "autonomy.bounded_actions", `[["a",":"]]`)
	if _, err := Verify(decoded(t, traceJSON), card, now); err == nil {
		t.Error("a list with a colon is taken for an entry")
	}
}

// A score that is no number is null in the result, as with JSON.stringify.
func TestScoresThatAreNoNumber(t *testing.T) {
	v, err := Verify(tree(t, traceJSON, "decision.confidence", `"high"`), decoded(t, cardJSON), now)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(v)
	if err != nil || !strings.Contains(string(text), `"similarity_score":null`) {
		t.Errorf("%s, %v", text, err)
	}
	features, err := TraceFeatures(tree(t, traceJSON, "decision.confidence", `"high"`))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := features.MarshalJSON(); err != nil || !strings.Contains(string(text), `"confidence":"high"`) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestDecode(t *testing.T) {
	v, err := Decode([]byte(` {"b":1,"2":1e400,"b":{"__proto__":null},"1":-0} `))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := stringify(v), `{"1":0,"2":null,"b":{"__proto__":null}}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, text := range []string{"", "{", "[1", `{"a"`, `{"a":`, "nul", "1 2", "01"} {
		if v, err := Decode([]byte(text)); err == nil {
			t.Errorf("%q is read as %v", text, v)
		}
	}
}
