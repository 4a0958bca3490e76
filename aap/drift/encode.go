package drift

import (
	"encoding/json"
	"fmt"

	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

// stateVersion is the version of the encoding.
const stateVersion = 1

// wireState is a State as stored: short names, the baseline as two columns.
type wireState struct {
	Version  int                    `json:"v"`
	Traces   int                    `json:"n"`
	Frozen   bool                   `json:"frozen,omitempty"`
	Keys     []string               `json:"keys,omitempty"`
	Weights  []float64              `json:"weights,omitempty"`
	Early    int                    `json:"early,omitempty"`
	Late     [escalationSample]bool `json:"late"`
	Values   int                    `json:"values,omitempty"`
	Outside  int                    `json:"undeclared,omitempty"`
	Tally    wireTally              `json:"tally"`
	Streak   int                    `json:"streak,omitempty"`
	Alerted  bool                   `json:"alerted,omitempty"`
	LowTrace []wireLow              `json:"low,omitempty"`
}

type wireTally struct {
	Values     int     `json:"v,omitempty"`
	Undeclared int     `json:"u,omitempty"`
	Benefit    float64 `json:"b,omitempty"`
	Benefits   int     `json:"n,omitempty"`
}

type wireLow struct {
	TraceID    string        `json:"id"`
	Digest     schema.Digest `json:"d"`
	Similarity float64       `json:"s"`
	Confidence float64       `json:"c"`
	NewAction  bool          `json:"a,omitempty"`
	Tally      wireTally     `json:"t"`
}

// Marshal returns s as compact JSON: some hundreds of bytes for an ordinary
// agent, a few KB in a streak.
func (s *State) Marshal() ([]byte, error) {
	w := wireState{
		Version: stateVersion, Traces: s.Traces, Frozen: s.Frozen,
		Early: s.Early, Late: s.Late, Values: s.Values, Outside: s.Undeclared,
		Tally: wireTally(s.BaselineTally), Streak: s.Streak, Alerted: s.Alerted,
	}
	for _, f := range s.Baseline {
		w.Keys, w.Weights = append(w.Keys, f.Key), append(w.Weights, f.Weight)
	}
	for _, low := range s.Low {
		w.LowTrace = append(w.LowTrace, wireLow{
			low.TraceID, low.Digest, low.Similarity, low.Confidence, low.NewAction, wireTally(low.Tally),
		})
	}
	data, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("encode drift state: %w", err)
	}
	return data, nil
}

// UnmarshalState reads what Marshal wrote. It refuses another version.
func UnmarshalState(data []byte) (*State, error) {
	var w wireState
	if err := json.Unmarshal(data, &w); err != nil {
		return nil, fmt.Errorf("decode drift state: %w", err)
	}
	if w.Version != stateVersion {
		return nil, fmt.Errorf("decode drift state: version %d, this engine reads version %d", w.Version, stateVersion)
	}
	if len(w.Keys) != len(w.Weights) {
		return nil, fmt.Errorf("decode drift state: %d keys but %d weights", len(w.Keys), len(w.Weights))
	}
	s := &State{
		Traces: w.Traces, Frozen: w.Frozen,
		Early: w.Early, Late: w.Late, Values: w.Values, Undeclared: w.Outside,
		BaselineTally: Tally(w.Tally), Streak: w.Streak, Alerted: w.Alerted,
	}
	for i, key := range w.Keys {
		s.Baseline = append(s.Baseline, similarity.Feature{Key: key, Weight: w.Weights[i]})
	}
	for _, low := range w.LowTrace {
		s.Low = append(s.Low, Low{
			low.TraceID, low.Digest, low.Similarity, low.Confidence, low.NewAction, Tally(low.Tally),
		})
	}
	return s, nil
}
