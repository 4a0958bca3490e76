package eval

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

const cardJSON = `{"aap_version":"0.1.0","card_id":"ac","agent_id":"a","issued_at":"2026-01-01T00:00:00Z",
	"principal":{"type":"human","relationship":"delegated_authority"},
	"values":{"declared":["principal_benefit","transparency"]},
	"autonomy_envelope":{"bounded_actions":["search"],"forbidden_actions":["delete"],
		"escalation_triggers":[{"condition":"amount > 100","action":"escalate","reason":"r"}]},
	"audit_commitment":{"trace_format":"ap-trace-v1","retention_days":90,"queryable":false}}`

const traceJSON = `{"trace_id":"t1","agent_id":"a","card_id":"ac","timestamp":"2026-02-01T00:00:00Z",
	"action":{"type":"execute","name":"delete","category":"bounded","parameters":{"amount":150}},
	"decision":{"alternatives_considered":[{"option_id":"o","description":"d","score":0.9}],"selected":"o",
		"selection_reasoning":"r","values_applied":["transparency"],"confidence":0.9}}`

// ask returns one request line.
func ask(id, op, members string) string {
	return strings.ReplaceAll(`{"id":"`+id+`","op":"`+op+`",`+members+`}`, "\n", " ") + "\n"
}

// drifting returns a list of eight traces, of which the last three have drifted.
func drifting() string {
	var traces []string
	for i := range 8 {
		trace := strings.Replace(traceJSON, `"t1"`, `"t`+string(rune('0'+i))+`"`, 1)
		trace = strings.Replace(trace, "00:00:00Z", "00:0"+string(rune('0'+i))+":00Z", 1)
		if i > 4 {
			trace = strings.NewReplacer("execute", "recommend", "delete", "promote", "bounded", "forbidden",
				"transparency", "profit").Replace(trace)
		}
		traces = append(traces, trace)
	}
	return `"traces":[` + strings.Join(traces, ",") + `]`
}

func TestBothProfilesJudge(t *testing.T) {
	both := `"trace":` + traceJSON + `,"card":` + cardJSON
	requests := ask("1", "verify", both) +
		ask("2", "condition", `"condition":"amount > 100","trace":`+traceJSON) +
		ask("3", "drift", `"card":`+cardJSON+`,`+drifting()) +
		ask("4", "features", both) +
		ask("5", "similarity", both) +
		ask("6", "trace_similarities", drifting())
	types := map[Profile]string{
		ProfileReference: `unbounded_action forbidden_action missed_escalation`,
		ProfileSpec:      `UNBOUNDED_ACTION FORBIDDEN_ACTION MISSED_ESCALATION`,
	}
	for profile, want := range types {
		answers := judge(t, profile, requests)
		for i, a := range answers {
			if !a.OK || a.ID != string(rune('1'+i)) {
				t.Fatalf("%s: answer %+v", profile, a)
			}
		}
		verdict := answers[0].Result.(map[string]any)
		var got []string
		for _, violation := range verdict["violations"].([]any) {
			got = append(got, violation.(map[string]any)["type"].(string))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: violations %v, want %s", profile, got, want)
		}
		if name := verdict["verification_metadata"].(map[string]any)["profile"]; name != string(profile) {
			t.Errorf("%s: verdict names profile %v", profile, name)
		}
		if matched := answers[1].Result.(map[string]any)["matched"]; matched != true {
			t.Errorf("%s: condition matched %v", profile, matched)
		}
		if alerts := answers[2].Result.([]any); len(alerts) != 1 {
			t.Errorf("%s: alerts %v, want one", profile, alerts)
		}
		if similarities := answers[5].Result.(map[string]any)["similarities"].([]any); len(similarities) != 5 {
			t.Errorf("%s: similarities %v, want five", profile, similarities)
		}
	}
	spec, reference := judge(t, ProfileSpec, requests), judge(t, ProfileReference, requests)
	ofTrace := func(a answer) any { return a.Result.(map[string]any)["trace"] }
	if d := differ("features of a trace", ofTrace(spec[3]), ofTrace(reference[3])); d != "" {
		t.Errorf("spec and reference differ: %s", d)
	}
	if d := differ(spec[5].Op, spec[5].Result, reference[5].Result); d != "" {
		t.Errorf("spec and reference differ: %s", d)
	}
	if got, want := spec[4].Result.(map[string]any)["rounded"], spec[0].Result.(map[string]any)["similarity_score"]; got != want {
		t.Errorf("similarity %v, of the verdict %v", got, want)
	}
}

func TestSpecSaysWhereAConditionFails(t *testing.T) {
	a := judge(t, ProfileSpec, ask("1", "condition", `"condition":"amount >","trace":`+traceJSON))[0]
	result := a.Result.(map[string]any)
	if !a.OK || result["parsed"] != false || !strings.Contains(result["problem"].(string), "column") {
		t.Errorf("answer %+v", a)
	}
}

func TestSpecNamesWhatItRefuses(t *testing.T) {
	for _, c := range []struct{ op, members, want string }{
		{"verify", `"trace":{},"card":{}`, "card: "},
		{"verify", `"card":` + cardJSON, "trace: missing"},
		{"drift", `"card":` + cardJSON + `,"traces":[{}]`, "traces[0]"},
		{"drift", `"card":` + cardJSON + `,"traces":[],"sustained_threshold":0`, "sustained"},
		{"features", `"x":1`, "neither trace nor card"},
		{"judge", `"x":1`, `"judge"`},
	} {
		a := judge(t, ProfileSpec, ask("1", c.op, c.members))[0]
		if a.OK || !strings.Contains(a.Error, c.want) {
			t.Errorf("%s: %+v, want an error that says %s", c.op, a, c.want)
		}
	}
}

func TestInvalidLineAffectsOnlyItself(t *testing.T) {
	good := ask("g", "condition", `"condition":"","trace":{}`)
	answers := judge(t, ProfileReference, good+"{broken\n\n"+good+`[1]`+"\n"+`{"id":"7"}`+"\n"+strings.TrimSpace(good))
	var got []bool
	for _, a := range answers {
		got = append(got, a.OK)
	}
	if len(got) != 6 || !got[0] || got[1] || !got[2] || got[3] || got[4] || !got[5] {
		t.Fatalf("answers %v", answers)
	}
	if !strings.Contains(answers[1].Error, "line 2") || !strings.Contains(answers[3].Error, "line 5") {
		t.Errorf("errors %q and %q do not name their lines", answers[1].Error, answers[3].Error)
	}
}

func TestIDsAreReturnedUnchanged(t *testing.T) {
	var out bytes.Buffer
	in := `{"id":{"n":1e400},"op":"condition","condition":"","trace":{}}` + "\n" + `{"op":"condition","condition":""}`
	if err := Run(strings.NewReader(in), &out, Options{Profile: ProfileReference, Now: judgedAt}); err != nil {
		t.Fatal(err)
	}
	want := `{"id":{"n":1e400},"op":"condition","ok":true,"result":{"matched":false,"parsed":true}}` + "\n" +
		`{"id":null,"op":"condition","ok":true,"result":{"matched":false,"parsed":true}}` + "\n"
	if out.String() != want {
		t.Errorf("output\n%swant\n%s", out.String(), want)
	}
}

func TestALineBeyondTheLimit(t *testing.T) {
	good := ask("g", "condition", `"condition":"","trace":{}`)
	long := io.LimitReader(zeros{}, MaxLineBytes+1)
	var out bytes.Buffer
	in := io.MultiReader(long, strings.NewReader("\n"+good))
	if err := Run(in, &out, Options{Profile: ProfileReference, Now: judgedAt}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "longer than") || !strings.Contains(lines[1], `"ok":true`) {
		t.Errorf("output %q", lines)
	}
}

// zeros is an endless line.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

func TestRunReturnsReadAndWriteErrors(t *testing.T) {
	failure := errors.New("the disk is gone")
	options := Options{Profile: ProfileReference, Now: judgedAt}
	if err := Run(iotest.ErrReader(failure), io.Discard, options); !errors.Is(err, failure) {
		t.Errorf("reading: %v", err)
	}
	good := ask("g", "condition", `"condition":"","trace":{}`)
	if err := Run(strings.NewReader(good), failing{failure}, options); !errors.Is(err, failure) {
		t.Errorf("writing: %v", err)
	}
	if err := Run(strings.NewReader(good), io.Discard, Options{Profile: "lenient"}); err == nil {
		t.Error("profile lenient is accepted")
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// Requests may write times in every form of RFC 3339.
func TestTimesOfRequests(t *testing.T) {
	flat := strings.NewReplacer("\n", " ", "\t", " ").Replace
	request := func(now string) string {
		return flat(`{"id":"1","op":"verify","now":` + now + `,"trace":` + shopTrace + `,"card":` + shopCard + `}`)
	}
	for now, want := range map[string]string{
		`"2026-02-01t00:00:00z"`: "2026-02-01T00:00:00Z", `"2016-12-31T23:59:60Z"`: "2017-01-01T00:00:00Z", `null`: "2026-03-01T00:00:00Z", `"soon"`: "", `7`: "",
	} {
		got := judge(t, ProfileSpec, request(now))[0]
		verdict, _ := got.Result.(map[string]any)
		if got.OK != (want != "") || got.OK && verdict["timestamp"] != want {
			t.Errorf("now %s: %v (%s), want %s", now, verdict["timestamp"], got.Error, want)
		}
	}
	// A card that cannot be registered is compared by its values and its expiry.
	expiring := `"my_card":{"card_id":"a","agent_id":"a","expires_at":"2026-01-01t00:00:00z","values":{"declared":["honesty"]}},` +
		`"their_card":{"card_id":"b","agent_id":"b","values":{"declared":["honesty"]}}`
	if got := judge(t, ProfileSpec, ask("2", "coherence", expiring))[0]; !got.OK {
		t.Errorf("coherence: %s", got.Error)
	}
}
