package session_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/schema"
)

// sessionVector is a line of docs/vectors/sessions.jsonl.
type sessionVector struct {
	ID       string            `json:"id"`
	Why      string            `json:"why"`
	Traces   []json.RawMessage `json:"traces"`
	Expected struct {
		Verified bool                    `json:"verified"`
		Findings []schema.SessionFinding `json:"findings"`
	} `json:"expected"`
}

// The vectors for other implementations pass, and they contain every kind of finding.
func TestSessionVectors(t *testing.T) {
	file, err := os.Open(filepath.Join("..", "..", "docs", "vectors", "sessions.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	kinds := map[string]bool{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var vector sessionVector
		if err := json.Unmarshal(lines.Bytes(), &vector); err != nil {
			t.Fatal(err)
		}
		for _, f := range vector.Expected.Findings {
			kinds[f.Type] = true
		}
		t.Run(vector.ID, vector.run)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{schema.TraceGap, schema.TraceOrder, schema.TurnOrder, schema.EscalationUnanswered, schema.ActedBeforeAnswer,
		schema.ContradictoryAnswer, schema.TimeImplausible, schema.DeniedButActed, schema.ApprovalConditionBroken, schema.ActionLoop} {
		if !kinds[kind] {
			t.Errorf("no vector has the expectation %s", kind)
		}
	}
}

func (v *sessionVector) run(t *testing.T) {
	j := session.New(session.Head{AgentID: "agent", SessionID: "s", Part: 1, LastPart: true}, nil)
	for _, raw := range v.Traces {
		trace, err := schema.Admit("", raw)
		if err != nil {
			t.Fatal(err)
		}
		j.Add(trace, &clean)
	}
	answers := j.Answers(session.Found{})
	got, _ := j.Finish(&answers, at)
	for i := range got.Findings {
		got.Findings[i].Description = ""
	}
	if got.Verified != v.Expected.Verified || !slices.Equal(got.Findings, v.Expected.Findings) {
		t.Errorf("%s: verified %v, findings %+v, want %v and %+v", v.Why, got.Verified, got.Findings, v.Expected.Verified, v.Expected.Findings)
	}
}
