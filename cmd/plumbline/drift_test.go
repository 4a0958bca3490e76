package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
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
