package eval

import (
	"strings"
	"testing"
)

func TestSelfSimilarityMatrix(t *testing.T) {
	a := judge(t, ProfileSpec, ask("1", "ssm", drifting()+`,"card":`+cardJSON)+ask("2", "ssm", drifting()))
	for _, answer := range a {
		if !answer.OK {
			t.Fatalf("answer %+v", answer)
		}
	}
	got := a[0].Result.(map[string]any)
	rows := got["matrix"].([]any)
	if got["size"] != 8.0 || len(rows) != 8 || rows[0].([]any)[1] != 1.0 || rows[0].([]any)[7].(float64) > 0.3 {
		t.Errorf("matrix %v", got)
	}
	if got["trend"].(float64) >= 0 || got["min_similarity"].(float64) > got["mean_similarity"].(float64) {
		t.Errorf("summary %v", got)
	}
	against := got["against_card"].(map[string]any)
	if len(against["similarities"].([]any)) != 8 || against["trend"].(float64) >= 0 {
		t.Errorf("against the card: %v", against)
	}
	if _, given := a[1].Result.(map[string]any)["against_card"]; given {
		t.Error("there is a similarity to a card that is not in the request")
	}
}

func TestTextSimilarity(t *testing.T) {
	a := judge(t, ProfileSpec, ask("1", "text_similarity", `"a":"the cheapest fare","b":"The cheapest  fare"`)+
		ask("2", "text_similarity", `"a":`+traceJSON+`,"b":`+traceJSON)+
		ask("3", "text_similarity", `"a":"the cheapest fare","b":`+traceJSON)+
		ask("4", "text_similarity", `"a":"x","b":7`)+ask("5", "text_similarity", `"a":"x"`))
	for i, want := range []float64{1, 1, 0} {
		if got := a[i].Result.(map[string]any)["similarity"]; got != want {
			t.Errorf("request %d: %v, want %v", i+1, a[i].Result, want)
		}
	}
	if !strings.Contains(a[3].Error, "b: neither a text nor a trace") || !strings.Contains(a[4].Error, "b: missing") {
		t.Errorf("errors %q, %q", a[3].Error, a[4].Error)
	}
}
