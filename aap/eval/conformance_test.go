package eval

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema/published"
)

var judgedAt = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// answer is one line of output, with generic members.
type answer struct {
	ID     string
	Op     string
	OK     bool
	Result any
	Error  string
}

// caseLine is one line of the published cases: a request with its answer.
type caseLine struct {
	ID       string
	Tag      string
	Expected struct {
		OK     bool
		Result any
	}
}

// The published cases under profile reference: every answer equals that of the TypeScript SDK,
// and is an error where the SDK throws.
func TestPublishedCases(t *testing.T) {
	input := published.Read(t, "conformance/aap/cases.jsonl")
	answers := judge(t, ProfileReference, string(input))
	lines := bytes.Split(bytes.TrimSpace(input), []byte("\n"))
	if len(answers) != len(lines) {
		t.Fatalf("%d answers to %d requests", len(answers), len(lines))
	}
	for i, line := range lines {
		var want caseLine
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatal(err)
		}
		t.Run(want.ID+" "+want.Tag, func(t *testing.T) { compareCase(t, want, answers[i]) })
	}
}

func compareCase(t *testing.T, want caseLine, got answer) {
	if got.ID != want.ID {
		t.Fatalf("answer to %s", got.ID)
	}
	if got.OK != want.Expected.OK {
		t.Fatalf("ok %v (%s), want %v", got.OK, got.Error, want.Expected.OK)
	}
	if !got.OK {
		if got.Error == "" {
			t.Error("refused without a reason")
		}
		return
	}
	if difference := differ("result", got.Result, want.Expected.Result); difference != "" {
		t.Error(difference)
	}
}

// judge runs requests and returns the answers.
func judge(t *testing.T, profile Profile, requests string) []answer {
	t.Helper()
	var out bytes.Buffer
	if err := Run(bytes.NewBufferString(requests), &out, Options{Profile: profile, Now: judgedAt}); err != nil {
		t.Fatal(err)
	}
	var answers []answer
	lines := bufio.NewScanner(&out)
	lines.Buffer(nil, MaxLineBytes)
	for lines.Scan() {
		var a answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		answers = append(answers, a)
	}
	return answers
}

// differ returns the first place where got differs from want, "" where there is none. Numbers
// may differ by 1e-9; verification_metadata may have additional members.
func differ(path string, got, want any) string {
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %v, want an object", path, got)
		}
		return differObject(path, got, want)
	case []any:
		got, ok := got.([]any)
		if !ok || len(got) != len(want) {
			return fmt.Sprintf("%s is %v, want %v", path, got, want)
		}
		for i := range want {
			if d := differ(fmt.Sprintf("%s[%d]", path, i), got[i], want[i]); d != "" {
				return d
			}
		}
		return ""
	case float64:
		if got, ok := got.(float64); ok && math.Abs(got-want) <= 1e-9 {
			return ""
		}
	}
	if got != want {
		return fmt.Sprintf("%s is %v, want %v", path, got, want)
	}
	return ""
}

func differObject(path string, got, want map[string]any) string {
	for name := range want {
		if _, ok := got[name]; !ok {
			return fmt.Sprintf("%s lacks %s", path, name)
		}
		if d := differ(path+"."+name, got[name], want[name]); d != "" {
			return d
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok && path != "result.verification_metadata" {
			return fmt.Sprintf("%s has %s, which is not wanted", path, name)
		}
	}
	return ""
}
