package eval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// conditionVector is one line of docs/vectors/conditions.jsonl beyond the request.
type conditionVector struct {
	ID, Tag, Why string
	Expected     struct {
		OK     bool
		Result any
	}
}

// The vectors that a second implementation of section 4.6 could be held to.
func TestConditionVectors(t *testing.T) {
	input, err := os.ReadFile(filepath.Join("..", "..", "docs", "vectors", "conditions.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(input), []byte("\n"))
	if len(lines) < 150 {
		t.Errorf("%d vectors, want 150 at least", len(lines))
	}
	answers := judge(t, ProfileSpec, string(input))
	if len(answers) != len(lines) {
		t.Fatalf("%d answers to %d vectors", len(answers), len(lines))
	}
	known := map[string]string{}
	for i, line := range lines {
		var want conditionVector
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatal(err)
		}
		if want.Tag == "" || want.Why == "" || known[want.ID] != "" {
			t.Errorf("vector %s lacks tag or reason, or its id is not its own", want.ID)
		}
		known[want.ID] = want.Why
		t.Run(want.ID+" "+want.Tag, func(t *testing.T) {
			got := answers[i]
			if got.ID != want.ID || got.OK != want.Expected.OK {
				t.Fatalf("%s: answer to %s, ok %v (%s)", want.Why, got.ID, got.OK, got.Error)
			}
			if lack := lacks("result", got.Result, want.Expected.Result); lack != "" {
				t.Errorf("%s: %s", want.Why, lack)
			}
		})
	}
}

// lacks returns the first place where got does not have what want has, "" where
// there is none. Objects may have more; a list that is absent is empty.
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
