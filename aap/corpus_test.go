package aap

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/published"
)

func judge(t testing.TB) *Judge {
	t.Helper()
	j, err := NewJudge(DefaultThresholds())
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func corpusCards(t testing.TB) map[string]*Compiled {
	t.Helper()
	cards := map[string]*Compiled{}
	for _, line := range published.Lines(t, "corpus/cards.jsonl") {
		c, err := Register(line)
		if err != nil {
			t.Fatalf("%.80s: %v", line, err)
		}
		cards[c.Card.CardID] = c
	}
	return cards
}

// TestCorpusVerdicts judges 8,039 traces of real agents.
func TestCorpusVerdicts(t *testing.T) {
	want := map[string][]string{}
	for _, line := range published.Lines(t, "corpus/expected.jsonl.gz") {
		var e struct {
			TraceID    string   `json:"trace_id"`
			Violations []string `json:"without_log_triggers"`
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if len(e.Violations) > 0 {
			want[e.TraceID] = slices.Sorted(slices.Values(e.Violations))
		}
	}
	cards, j := corpusCards(t), judge(t)
	var (
		decoder  schema.Decoder
		trace    schema.Trace
		verdict  schema.Verdict
		judged   int
		got      = map[string][]string{}
		traces   = map[string]int{}
		remarked = map[string]int{}
	)
	for _, line := range published.Lines(t, "corpus/traces.jsonl.gz") {
		if err := decoder.Admit(&trace, "", line); err != nil {
			t.Fatal(err)
		}
		j.Verify(&trace, cards[trace.CardID], Facts{}, time.Time{}, &verdict)
		judged++
		types := map[string]bool{}
		for _, violation := range verdict.Violations {
			types[violation.Type] = true
		}
		for kind := range types {
			traces[kind]++
		}
		if len(types) > 0 {
			got[strings.Clone(verdict.TraceID)] = slices.Sorted(maps.Keys(types))
		}
		for _, remark := range slices.Concat(verdict.Findings, verdict.Warnings) {
			remarked[remark.Type]++
		}
	}
	if judged != 8039 || !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%d traces judged; violations on %d traces differ from the expected %d", judged, len(got), len(want))
	}
	totals := map[string]int{schema.ForbiddenAction: 61, schema.MissedEscalation: 48, schema.UndeclaredValue: 21, schema.UnboundedAction: 11}
	if !maps.Equal(traces, totals) {
		t.Errorf("traces by violation %v, want %v", traces, totals)
	}
	others := map[string]int{schema.CategoryMismatch: 11, schema.DeniedButActed: 2, schema.WarnLogTrigger: 465}
	if !maps.Equal(remarked, others) {
		t.Errorf("findings and warnings %v, want %v", remarked, others)
	}
}

// At most one in twenty traces of real agents gets the warning of low similarity to its card,
// in either half of the sessions. Traces without violations score higher than traces with
// violations.
func TestCorpusSimilarity(t *testing.T) {
	cards, j := corpusCards(t), judge(t)
	var (
		decoder schema.Decoder
		trace   schema.Trace
		verdict schema.Verdict
		halves  [2]struct {
			traces, warned, clean, violating int
			sumClean, sumViolating           float64
		}
	)
	for _, line := range published.Lines(t, "corpus/traces.jsonl.gz") {
		if err := decoder.Admit(&trace, "", line); err != nil {
			t.Fatal(err)
		}
		j.Verify(&trace, cards[trace.CardID], Facts{}, time.Time{}, &verdict)
		half := &halves[schema.DigestOf([]byte(trace.Context.SessionID))[0]%2]
		half.traces++
		if slices.ContainsFunc(verdict.Warnings, func(r schema.Remark) bool { return r.Type == schema.WarnLowBehavioralSimilarity }) {
			half.warned++
		}
		if verdict.Verified {
			half.clean++
			half.sumClean += verdict.SimilarityScore
		} else {
			half.violating++
			half.sumViolating += verdict.SimilarityScore
		}
	}
	for i := range halves {
		h := &halves[i]
		clean, violating := h.sumClean/float64(h.clean), h.sumViolating/float64(h.violating)
		t.Logf("half %d: %d of %d traces have a warning; mean score %.3f of %d without violations, %.3f of %d with",
			i, h.warned, h.traces, clean, h.clean, violating, h.violating)
		if h.traces < 3000 || 20*h.warned > h.traces || clean < violating+0.1 {
			t.Errorf("half %d: %+v", i, *h)
		}
	}
}
