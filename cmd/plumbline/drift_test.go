package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// writeDrifting writes twenty traces of agent d under card ac-d: sixteen usual
// ones, three that have drifted, and a usual one.
func writeDrifting(dir string) error {
	var lines bytes.Buffer
	for n := range 20 {
		action, values, confidence := `{"type":"recommend","name":"search","category":"bounded"}`, `["honesty"]`, "0.9"
		if n >= 16 && n < 19 {
			action, values, confidence = `{"type":"execute","name":"wire","category":"forbidden"}`, `["profit"]`, "0.6"
		}
		at := time.Date(2026, 2, 1, 0, n, 0, 0, time.UTC).Format(time.RFC3339)
		fmt.Fprintf(&lines, `{"trace_id":"d-%02d","agent_id":"d","card_id":"ac-d","timestamp":%q,"action":%s,"decision":{`+
			`"alternatives_considered":[{"option_id":"o","description":"d"}],"selected":"o","selection_reasoning":"the cheapest of %d fares",`+
			`"values_applied":%s,"confidence":%s}}`+"\n", n, at, action, n, values, confidence)
	}
	return os.WriteFile(filepath.Join(dir, "drifting.jsonl"), lines.Bytes(), 0o600)
}

// The results for the complete list and for the stream are compared.
func TestDriftOverTheListIsCompared(t *testing.T) {
	digest := func(n byte) schema.Digest { return schema.Digest{n} }
	alert := func(ids ...string) schema.DriftAlert { return schema.DriftAlert{TraceIDs: ids} }
	v := listView{
		points: []aapdrift.Point{
			{Digest: digest(1), Status: aapdrift.StatusBaseline}, {Digest: digest(2), Status: aapdrift.StatusNormal},
			{Digest: digest(3), Status: aapdrift.StatusLow}, {Digest: digest(4), Status: aapdrift.StatusNormal},
		},
		Alerts: []schema.DriftAlert{alert("a", "b"), alert("c")},
	}
	v.compare([]store.DriftReport{{
		Points: []store.DriftPoint{{TraceDigest: digest(1), Status: "baseline"}, {TraceDigest: digest(2), Status: "low"}},
		Alerts: []store.DriftAlert{{DriftAlert: alert("a", "b")}},
	}, {
		Points: []store.DriftPoint{{TraceDigest: digest(3), Status: "late"}},
		Alerts: []store.DriftAlert{{DriftAlert: alert("b", "c")}},
	}})
	if v.Same != 1 || len(v.OnlyList) != 1 || len(v.OnlyStream) != 1 || v.NotUsed != 1 || v.NotMeasured != 1 || v.Differing != 1 {
		t.Errorf("the comparison is %+v", v)
	}
}

// In mode sessions the explanation says where the baseline comes from, what each measure has found, and where
// alerts open and close. It prints hostile names as escapes, and its drawing is well-formed.
func TestExplanationOfSessions(t *testing.T) {
	const hostile = "a<b>\x1b[2J\u202e"
	began := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	var r store.DriftReport
	for i, status := range []string{"baseline", "normal", "drift", "drift", "recovered"} {
		p := store.DriftPoint{EventTime: began.Add(time.Duration(i) * time.Minute), TraceID: hostile, Status: status, Threshold: 0.3}
		if i > 0 {
			p.Similarity = &[]float64{0, 0.9, 0.9, 0.2, 0.9}[i]
		}
		r.Points = append(r.Points, p)
	}
	r.State.CardID = hostile
	r.Alerts = []store.DriftAlert{{DriftAlert: schema.DriftAlert{
		AgentID: hostile, State: schema.AlertClosed, Revision: 2, OpenedAt: r.Points[2].EventTime, ClosedAt: r.Points[4].EventTime,
		Count: 2, Measures: []string{"value_down:" + hostile}, Summary: hostile,
	}}}
	v := seriesOf(&r, &aapdrift.State{Params: aapdrift.DefaultParams()}, 3)
	v.Baseline = &baselineView{baselineName: baselineName{Mode: "sessions", FormedAt: began}, Traces: 60, SessionIDs: []string{"s-1", hostile}}
	v.Evidence = evidenceOf([]aapdrift.Evidence{{Name: "errors"}, {Name: "denials", BaselineEvents: 1, BaselineOf: 60, Strength: -2}, {Name: "value_down:" + hostile, Events: 3, Of: 4, Joined: true}})
	var text bytes.Buffer
	if err := v.write(&text, hostile, drawnLines(&r, 80, ascii)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"the baseline is the traces until 10 sessions are complete, at least 50 traces, or the first 200 traces\n",
		"3 traces in a row (more where the baseline has such traces itself) below 0.3, of at least 2 sessions, or a measure at its limit\n", "the centroid of 60 traces of 2 sessions\n",
		"2026-02-01T00:00:00Z to 2026-02-01T00:04:00Z; threshold 0.3\n  similarity   9929\n  below          v\n  window      b ==\n  alert         ^ $\n  b baseline   = alert open",
		"closed 2026-02-01T00:04:00Z", " -         3 of 4      0.0       in the open alert\n", "denials",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the explanation lacks %q:\n%s", want, &text)
		}
	}
	if strings.ContainsAny(text.String(), "\x1b\u202e") || strings.Contains(text.String(), "errors") || strings.Index(text.String(), "3 of 4") > strings.Index(text.String(), "1 of 60") {
		t.Errorf("the explanation has controls, a measure without observations, or the weaker evidence first:\n%s", &text)
	}
	drawn := strings.Join(elements(t, seriesChart(hostile, &r).svg()), "\n")
	for _, want := range []string{"text: alert open", "text: opened: value_down:a", "text: closed", "line x1=382.0"} {
		if !strings.Contains(drawn, want) {
			t.Errorf("the drawing lacks %q:\n%s", want, drawn)
		}
	}
}
