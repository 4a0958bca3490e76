package eval

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

const goodLine = `{"id":"g","op":"condition","condition":""}`

// Every line gets its own answer, whatever it contains, and so do the lines after it.
func TestEveryLineHasItsOwnAnswer(t *testing.T) {
	for _, c := range []struct{ line, id, op, want string }{
		{`{"id":1,"op":"condition"`, "null", "", "unexpected end"},
		{`{"id":1,"op":"condition"} {}`, "null", "", "after top-level value"},
		{"\xff\xfe{}", "null", "", "not a JSON object"},
		{"\ufeff" + goodLine, "null", "", "not a JSON object"},
		{"null", "null", "", "not a JSON object"},
		{"[1]", "null", "", "not a JSON object"},
		{`"verify"`, "null", "", "not a JSON object"},
		{`{}`, "null", "", "op: missing"},
		{`{"id":[1,{"a":null}]}`, `[1,{"a":null}]`, "", "op: missing"},
		{`{"id":true,"op":5}`, "true", "", "op: a JSON number, where a string is needed"},
		{`{"id":-0.0,"op":"judge"}`, "-0.0", "judge", `op "judge" is none of coherence, condition`},
		{`{"id":"x","OP":"verify"}`, `"x"`, "", "op: missing"},
		{`{"id":1e999,"op":"verify"}`, "1e999", "verify", "trace"},
		{`{"id":"a","id":"b","op":"verify","now":"soon"}`, `"b"`, "verify", "now: "},
		{`{"id":"a","op":"verify","now":5}`, `"a"`, "verify", "now: "},
	} {
		for _, profile := range []Profile{ProfileReference, ProfileSpec} {
			var out bytes.Buffer
			in := goodLine + "\r\n \t\n" + c.line + "\r\n" + strings.Replace(goodLine, `"g"`, `"last"`, 1)
			if err := Run(strings.NewReader(in), &out, Options{Profile: profile, Now: judgedAt}); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			if len(lines) != 3 || !strings.HasPrefix(lines[0], `{"id":"g"`) || !strings.HasPrefix(lines[2], `{"id":"last"`) {
				t.Fatalf("%s: answers %q", c.line, lines)
			}
			var got result
			if err := json.Unmarshal([]byte(lines[1]), &got); err != nil {
				t.Fatal(err)
			}
			if string(got.ID) != c.id || got.Op != c.op || got.OK || !strings.Contains(got.Error, c.want) {
				t.Errorf("%s under %s: %s, want an error of id %s, op %q that says %s", c.line, profile, lines[1], c.id, c.op, c.want)
			}
		}
	}
}

// A caller that sends line by line gets each answer before the next question.
func TestEachRequestIsAnsweredBeforeTheNext(t *testing.T) {
	caller := &caller{t: t, questions: 3}
	if err := Run(caller, &caller.answers, Options{Profile: ProfileReference, Now: judgedAt}); err != nil {
		t.Fatal(err)
	}
	if caller.asked != caller.questions {
		t.Errorf("%d questions were read", caller.asked)
	}
}

// caller asks each question when the one before is answered.
type caller struct {
	t                *testing.T
	questions, asked int
	answers          bytes.Buffer
}

func (c *caller) Read(p []byte) (int, error) {
	if got := strings.Count(c.answers.String(), `"ok":true`); got != c.asked || strings.Count(c.answers.String(), "\n") != got {
		c.t.Errorf("after %d questions, the answers are %q", c.asked, &c.answers)
	}
	if c.asked == c.questions {
		return 0, io.EOF
	}
	c.asked++
	return copy(p, goodLine+"\n"), nil
}

// The cost of a long line depends only on its length; a request of many megabytes is answered.
func TestALongRequest(t *testing.T) {
	padding := strings.Repeat("x", 10<<20)
	a := judge(t, ProfileReference, ask("1", "condition", `"condition":"`+padding+`"`)+goodLine)
	if len(a) != 2 || a[0].OK || !strings.Contains(a[0].Error, "trace") || !a[1].OK {
		t.Errorf("%d answers, first %v %.100s", len(a), a[0].OK, a[0].Error)
	}
}

// Every verdict contains its engine and its profile.
func TestVerdictsNameEngineAndProfile(t *testing.T) {
	for _, profile := range []Profile{ProfileReference, ProfileSpec} {
		a := judge(t, profile, ask("1", "verify", `"trace":`+traceJSON+`,"card":`+cardJSON))[0]
		metadata, ok := a.Result.(map[string]any)["verification_metadata"].(map[string]any)
		if !ok || metadata["profile"] != string(profile) || metadata["engine_version"] == "" || metadata["engine_version"] == nil {
			t.Errorf("%s: metadata %v", profile, metadata)
		}
	}
}
