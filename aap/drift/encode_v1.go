package drift

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/plumbline/plumbline/schema"
)

// wireState1 is version 1 of the encoding. Its baseline has no id, no number of traces and no
// reasoning. The missing parts are replaced as follows. The baseline's id is the SHA-256 of the
// stored state. The escalations among the first three traces, which version 1 has, serve as the
// baseline's escalation rate. Reasoning is unknown until there is another baseline, and
// communication_drift is not found until then. New values count from the next trace on.
type wireState1 struct {
	Traces   int                    `json:"n"`
	Frozen   bool                   `json:"frozen"`
	Keys     []string               `json:"keys"`
	Weights  []float64              `json:"weights"`
	Early    int                    `json:"early"`
	Late     [escalationSample]bool `json:"late"`
	Values   int                    `json:"values"`
	Outside  int                    `json:"undeclared"`
	Tally    wireTally              `json:"tally"`
	Streak   int                    `json:"streak"`
	Alerted  bool                   `json:"alerted"`
	LowTrace []struct {
		TraceID    string        `json:"id"`
		Digest     schema.Digest `json:"d"`
		Similarity float64       `json:"s"`
		Confidence float64       `json:"c"`
		NewAction  bool          `json:"a"`
		Tally      wireTally     `json:"t"`
	} `json:"low"`
}

func unmarshalVersion1(data []byte) (*State, error) {
	var w wireState1
	if err := json.Unmarshal(data, &w); err != nil {
		return nil, err
	}
	if len(w.Keys) != len(w.Weights) {
		return nil, fmt.Errorf("%d keys but %d weights", len(w.Keys), len(w.Weights))
	}
	s := &State{
		Traces: w.Traces, Early: w.Early, Late: w.Late, Values: w.Values, Undeclared: w.Outside,
		Streak: w.Streak, Alerted: w.Alerted,
	}
	content := Content{Features: features(w.Keys, w.Weights), Tally: Tally(w.Tally)}
	content.Tally.Traces, content.Tally.Escalated = min(w.Traces, escalationSample), w.Early
	if w.Frozen {
		s.Baseline = &Baseline{ID: sha256.Sum256(data), Mode: ModeFirst, Content: content}
	} else {
		content.Tally.Traces = w.Traces
		s.gather = &gathering{Content: content}
	}
	for i := range w.LowTrace {
		low := &w.LowTrace[i]
		tally := Tally(low.Tally)
		tally.Traces, tally.Confidence = 1, low.Confidence
		s.Low = append(s.Low, Low{
			TraceRef: TraceRef{low.TraceID, low.Digest}, Similarity: low.Similarity, NewAction: low.NewAction, Tally: tally,
		})
	}
	return s, nil
}
