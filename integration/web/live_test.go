package web

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// The live page shows a trace that is judged while it is open, whatever its agent is called, and stops when it is paused.
func TestLivePage(t *testing.T) {
	at, dsn := startConsole(t)
	tab := browser(t)
	do(t, tab, chromedp.Navigate(at+"/tail"), chromedp.WaitReady("#main h1"))
	awaitPage(t, tab, `document.getElementById("tail-state").textContent === "Up to date."`)
	const agent = `<img src=x onerror="window.owned=true">`
	judged(t, dsn, agent)
	awaitPage(t, tab, `document.querySelectorAll("#tail tr").length === 1`)
	if text := evaluate[string](t, tab, `document.querySelector("#tail tr").cells[2].textContent`); text != agent {
		t.Errorf("the agent is shown as %q", text)
	}
	if evaluate[bool](t, tab, `window.owned === true || document.querySelector("#tail img") !== null`) {
		t.Error("the agent's name is markup")
	}
	do(t, tab, chromedp.Evaluate[chromedp.Void](`document.getElementById("pause").click()`))
	awaitPage(t, tab, `document.getElementById("tail-state").textContent.startsWith("Paused")`)
}

// awaitPage returns once a condition holds in the page.
func awaitPage(t *testing.T, tab context.Context, condition string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !evaluate[bool](t, tab, condition); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s never holds: %s", condition, evaluate[string](t, tab, `document.getElementById("main").innerText`))
		}
	}
}

// judged stores a trace of an agent with a verdict of now.
func judged(t *testing.T, dsn, agent string) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{DSN: dsn, Tenant: "default", Stage: "test"})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	trace, err := schema.Admit("", fmt.Appendf(nil, `{"trace_id":"t","agent_id":%q,"card_id":"c","timestamp":%q,"action":{"type":"execute","name":"search","category":"bounded"},`+
		`"decision":{"alternatives_considered":[{"option_id":"a","description":"search"}],"selected":"a","selection_reasoning":"r","values_applied":["v"]},"context":{"session_id":"s"}}`, agent, now.UTC().Format(time.RFC3339Nano)))
	if err != nil {
		t.Fatal(err)
	}
	b := s.NewTraceBatch()
	b.Add(trace, store.Meta{Received: now, StreamCreated: time.Unix(1, 0), Sequence: 1, SessionID: "s", RetainUntil: now.Add(24 * time.Hour)},
		&schema.Verdict{Verified: true, Status: schema.StatusJudged, RecommendedAction: schema.Proceed, AgentID: agent, TraceID: "t", CardID: "c", Timestamp: now, Violations: []schema.Remark{}, Warnings: []schema.Remark{}, Findings: []schema.Remark{},
			Metadata: schema.Metadata{AlgorithmVersion: "1.2.0", EngineVersion: "1", Profile: "spec", TraceDigest: trace.Digest, ChecksPerformed: []string{"autonomy"}, Similarity: schema.SimilarityDetails{Similarities: []float64{1}}}})
	if err := s.InsertTraces(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
